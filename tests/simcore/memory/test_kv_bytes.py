"""Bytes worked out by hand, for every attention, number format and way of sharing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.core.errors import InputError, UnknownNameError
from simcore.memory.kv_bytes import KV_DTYPE_BITS, KvFormat, kv_bytes_per_token, own_caches
from simcore.models import Attention, LatentAttention, load_model

MULTI_HEAD = Attention(query_heads=40, kv_heads=40, head_dim=128, value_head_dim=128)
GROUPED = Attention(query_heads=32, kv_heads=8, head_dim=128, value_head_dim=128)
MULTI_QUERY = Attention(query_heads=71, kv_heads=1, head_dim=64, value_head_dim=64)
UNEQUAL = Attention(query_heads=16, kv_heads=16, head_dim=192, value_head_dim=128)
LATENT = LatentAttention(
    128, kv_lora_rank=512, q_lora_rank=1536, nope_head_dim=128, rope_head_dim=64, value_head_dim=128
)


@pytest.mark.parametrize(
    ("attention", "dtype", "scales", "expected"),
    [
        (MULTI_HEAD, "fp16", "auto", 2 * 40 * 128 * 2),  # 20,480
        (GROUPED, "bf16", "auto", 4096),
        (GROUPED, "fp32", "auto", 8192),
        (GROUPED, "fp8", "auto", 2048),  # one scale for all: nothing per token
        (GROUPED, "fp8", "token", 2048 + 2 * 4),
        (GROUPED, "fp8", "token-head", 2048 + 2 * 8 * 4),
        (GROUPED, "int8", "tensor", 2048),
        (GROUPED, "int8", "auto", 2048 + 2 * 8 * 4),  # an fp32 scale per head of keys and of values
        (GROUPED, "int4", "token-head", 1024 + 2 * 8 * 4),
        # 32 numbers share scale and zero point of 2 bytes each: 5 bits a number, of keys and of values alike.
        (GROUPED, "int4", "auto", 2 * 8 * 128 * 5 // 8),
        (MULTI_QUERY, "fp16", "auto", 256),
        (MULTI_QUERY, "int8", "auto", 128 + 8),
        (UNEQUAL, "bf16", "auto", 16 * 320 * 2),
        (UNEQUAL, "int4", "auto", 16 * 320 * 5 // 8),
        (LATENT, "bf16", "auto", 1152),
        (LATENT, "fp8", "auto", 576),
        (LATENT, "int8", "auto", 576 + 4),
        (LATENT, "int4", "auto", 288 + 18 * 4),
    ],
)
def test_a_token_in_one_layer(attention, dtype, scales, expected):
    assert KvFormat.of(dtype, scales).layer_bytes_per_token(attention) == expected


@pytest.mark.parametrize(
    ("ranks", "expected"), [(1, 4096), (2, 2048), (8, 512), (16, 512), (3, 1536)]
)  # a rank holds at least one of 8 heads; the fullest of three holds 3
def test_ranks_share_heads(ranks, expected):
    assert KvFormat().layer_bytes(GROUPED, 1, ranks) == expected
    assert KvFormat().layer_bytes(LATENT, 1, ranks) == 1152


def test_a_block_shorter_than_a_group_has_scales_of_its_own():
    kivi = KvFormat.of("int4")
    data, value_scales = 1024, 8 * 4 * 4
    key_scales = 8 * 128 * 4
    assert kivi.layer_bytes(GROUPED, 16) == 16 * (data + value_scales) + key_scales
    assert kivi.layer_bytes(GROUPED, 32) == 32 * (data + value_scales) + key_scales
    assert kivi.layer_bytes(GROUPED, 33) == 33 * (data + value_scales) + 2 * key_scales


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("opt-13b", 819_200),
        ("llama-3.1-8b", 131_072),
        ("llama-2-70b", 327_680),
        ("llama-3.1-405b", 516_096),
        ("deepseek-v3", 70_272),
    ],
)
def test_published_bytes_per_token(model, expected):
    assert kv_bytes_per_token(load_model(model)) == expected


@pytest.mark.parametrize(
    ("model", "sharing", "expected"),
    [
        ("llama-3.1-8b", 2, 65_536),
        ("llama-3.1-8b", 3, 11 * 4096),
        ("llama-3.1-8b", 32, 4096),
        ("gpt-oss-20b", 2, 12 * 2048),  # 12 layers that slide and 12 that do not: 6 caches of each
        ("gpt-oss-20b", 5, (3 + 3) * 2048),
    ],
)
def test_layers_that_share_a_cache_count_once(model, sharing, expected):
    assert kv_bytes_per_token(load_model(model), sharing_layers=sharing) == expected


def test_own_caches():
    assert [own_caches(7, sharing) for sharing in (1, 2, 3, 7, 9)] == [7, 4, 3, 1, 1]


@given(st.sampled_from(sorted(KV_DTYPE_BITS)), st.integers(1, 300), st.integers(1, 64), st.integers(1, 16))
def test_tokens_stored_together_never_take_more_than_one_by_one(dtype, tokens, group_size, ranks):
    fmt = KvFormat.of(dtype, group_size=group_size)
    together = fmt.layer_bytes(GROUPED, tokens, ranks)
    assert together <= tokens * fmt.layer_bytes(GROUPED, 1, ranks)
    assert together >= tokens * fmt.layer_bytes_per_token(GROUPED, ranks) - 1e-6


def test_what_makes_no_sense_is_refused():
    with pytest.raises(UnknownNameError, match=r"precision.kv_cache is 'int16', .* Did you mean 'int8'\?"):
        KvFormat.of("int16")
    with pytest.raises(UnknownNameError, match=r"precision.kv_scales is 'heads', .* Did you mean 'token-head'\?"):
        KvFormat.of("int8", "heads")
    with pytest.raises(InputError, match=r"precision.kv_scales is 'token', expected auto or tensor, since bf16"):
        KvFormat.of("bf16", "token")
