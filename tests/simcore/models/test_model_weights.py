"""Sizes that follow from a model's shape, worked out by hand on small shapes and held against one real checkpoint."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.core.errors import InputError, UnknownNameError
from simcore.models import (
    Attention,
    DenseFeedForward,
    LayerGroup,
    LinearAttention,
    MixtureOfExperts,
    ModelSpec,
    count_parameters,
    input_embedding_parameters,
    load_model,
    rank_weight_bytes,
    weight_bytes,
)

DENSE = ModelSpec(
    name="tiny",
    family="llama",
    hidden_size=256,
    layer_groups=(LayerGroup(2, Attention(4, 2, 64, 64), DenseFeedForward(512)),),
    vocabulary_size=1000,
    max_context_tokens=128,
    tied_embeddings=False,
    dtype="bf16",
)
ROUTED = replace(
    DENSE, layer_groups=(LayerGroup(2, Attention(4, 2, 64, 64), MixtureOfExperts(8, 2, 128, 64, router_bias=True)),)
)

EMBEDDING = 1000 * 256
NORMS = 5 * 256
ATTENTION = 256 * (256 + 128 + 128 + 256)
FEED_FORWARD = 3 * 256 * 512
EXPERT = 3 * 256 * 128
SHARED = 3 * 256 * 64
ROUTER = 8 * 256 + 8


def test_parameters_of_a_dense_model():
    expected = 2 * EMBEDDING + NORMS + 2 * (ATTENTION + FEED_FORWARD)
    assert count_parameters(DENSE) == (expected, expected)
    assert input_embedding_parameters(DENSE) == EMBEDDING


def test_tied_embeddings_are_counted_once_and_always_at_work():
    tied = replace(DENSE, tied_embeddings=True)
    assert count_parameters(tied).total == count_parameters(DENSE).total - EMBEDDING
    assert input_embedding_parameters(tied) == 0


def test_parameters_of_experts():
    every_token = 2 * EMBEDDING + NORMS + 2 * (ATTENTION + SHARED + ROUTER)
    total, active = count_parameters(ROUTED)
    assert total == every_token + 2 * 8 * EXPERT
    assert active == every_token + 2 * 2 * EXPERT


# 2 key heads of 64 x 2 for queries and keys, 4 value heads of 128 x 2 for values and gate; convolution over 4 tokens.
LINEAR = replace(DENSE, layer_groups=(LayerGroup(2, LinearAttention(2, 4, 64, 128), DenseFeedForward(512)),))
PROJECTIONS = 256 * (2 * 128 + 2 * 512) + 256 * 512
HEAD_GATES = 2 * 4 * 256
CONVOLUTION = (2 * 128 + 512) * 4
DECAYS = 2 * 4
GATED_NORM = 128


def test_parameters_of_linear_attention():
    layer = PROJECTIONS + HEAD_GATES + CONVOLUTION + DECAYS + GATED_NORM
    expected = 2 * EMBEDDING + NORMS + 2 * (layer + FEED_FORWARD)
    assert count_parameters(LINEAR) == (expected, expected)


def test_quantised_linear_attention_keeps_the_gates_of_its_heads_in_16_bits():
    scales = 4 * (PROJECTIONS + FEED_FORWARD) // (128 * 128)
    saved = weight_bytes(LINEAR, "bf16") - weight_bytes(LINEAR, "fp8-block")
    assert saved == 2 * (PROJECTIONS + FEED_FORWARD - scales)


def test_a_rank_holds_whole_heads_of_linear_attention():
    whole = 2 * (NORMS + 2 * GATED_NORM)
    split = weight_bytes(LINEAR) - whole
    assert rank_weight_bytes(LINEAR, "bf16", 2) == whole + split // 2
    by_key = 2 * 2 * (2 * 128 * 256 + 2 * 128 * 4)  # two layers, queries and keys of two heads, 16 bits
    assert rank_weight_bytes(LINEAR, "bf16", 4) == whole + (split - by_key) // 4 + by_key // 2


def test_an_output_gate_is_as_wide_as_what_the_query_heads_found():
    def gated(attention, gate):
        group = LayerGroup(2, replace(attention, output_gate=gate), DenseFeedForward(512))
        return count_parameters(replace(DENSE, layer_groups=(group,))).total

    for attention in (Attention(4, 2, 64, 64), Attention(4, 2, 64, 32)):
        assert gated(attention, True) - gated(attention, False) == 2 * 256 * 4 * attention.value_head_dim


def test_the_gate_of_a_shared_expert_is_one_row_that_every_rank_holds():
    block = replace(ROUTED.layer_groups[0].feed_forward, shared_gate=True)
    gated = replace(ROUTED, layer_groups=(replace(ROUTED.layer_groups[0], feed_forward=block),))
    assert count_parameters(gated).active - count_parameters(ROUTED).active == 2 * 256
    assert weight_bytes(gated, "fp8") - weight_bytes(ROUTED, "fp8") == 2 * 2 * 256
    assert rank_weight_bytes(gated, None, 4) - rank_weight_bytes(ROUTED, None, 4) == 2 * 2 * 256


@pytest.mark.parametrize(("dtype", "size"), [("bf16", 2), ("fp16", 2), ("fp32", 4)])
def test_bytes_in_full_precision(dtype, size):
    assert weight_bytes(ROUTED, dtype) == size * count_parameters(ROUTED).total


def test_bytes_default_to_the_published_dtype():
    assert weight_bytes(replace(DENSE, dtype="fp32")) == 4 * count_parameters(DENSE).total


def test_bytes_in_fp8_count_one_scale_per_block_and_leave_the_rest_in_bf16():
    scales = 4 * (ATTENTION + FEED_FORWARD) // (128 * 128)
    assert weight_bytes(DENSE, "fp8-block") == 2 * (2 * EMBEDDING + NORMS) + 2 * (ATTENTION + FEED_FORWARD + scales)


def test_a_block_cut_short_has_its_own_scale():
    narrow = replace(DENSE, layer_groups=(LayerGroup(1, Attention(4, 2, 64, 64), DenseFeedForward(130)),))
    wide = replace(DENSE, layer_groups=(LayerGroup(1, Attention(4, 2, 64, 64), DenseFeedForward(256)),))
    assert weight_bytes(wide, "fp8-block") - weight_bytes(narrow, "fp8-block") == 3 * 256 * (256 - 130)


def test_bytes_in_mxfp4_are_four_and_a_quarter_bits_per_expert_weight():
    experts = 2 * 8 * EXPERT
    assert weight_bytes(ROUTED, "mxfp4") == 2 * (count_parameters(ROUTED).total - experts) + experts * 17 // 32


def test_deepseek_v3_matches_its_checkpoint_number_type_by_number_type():
    # Numbers of each type in the safetensors files on the Hugging Face hub.
    published = {"BF16": 3_918_786_560, "F8_E4M3": 680_571_043_840, "F32": 41_555_600}
    published_bytes = 2 * published["BF16"] + published["F8_E4M3"] + 4 * published["F32"]
    # They hold one more layer for multi-token prediction, with copies of embedding and head, a projection and norms.
    spec = load_model("deepseek-v3")
    dense, routed = spec.layer_groups
    deeper = replace(spec, layer_groups=(dense, replace(routed, count=routed.count + 1)))
    prediction_module = 2 * 129_280 * 7168 + 2 * 7168 * 7168 + 3 * 7168
    # The router's bias, 256 numbers a layer, is fp32 there and counted as bf16 here.
    router_bias = 59 * 256
    assert weight_bytes(deeper) == published_bytes - 2 * prediction_module - 2 * router_bias


def test_an_unknown_dtype_is_refused():
    with pytest.raises(UnknownNameError, match=r"precision.weights is 'bf61', .* Did you mean 'bf16'\?"):
        weight_bytes(DENSE, "bf61")


def test_mxfp4_without_experts_is_refused():
    with pytest.raises(InputError, match="mxfp4 is for experts"):
        weight_bytes(DENSE, "mxfp4")


def test_a_rank_holds_its_share_of_matrices_and_all_of_norms_and_routers():
    router, bias = 8 * 256, 8
    whole = 2 * (NORMS + 2 * (router + bias))
    split = weight_bytes(ROUTED) - whole
    assert rank_weight_bytes(ROUTED, "bf16", 2) == whole + split // 2
    kv = 2 * 2 * 2 * 128 * 256  # two layers, keys and values of two heads, 16 bits: no further split among four ranks
    assert rank_weight_bytes(ROUTED, "bf16", 4) == whole + (split - kv) // 4 + kv // 2


@pytest.mark.parametrize(
    "name", ["llama-3.1-8b", "deepseek-v2-lite", "gpt-oss-20b", "mixtral-8x7b", "qwen3-next-80b-a3b"]
)
def test_the_stages_of_a_pipeline_hold_the_whole_model(name):
    spec = load_model(name)
    cuts = (0, 1, 7, spec.layers)
    parts = [rank_weight_bytes(spec, None, 1, range(*cut)) for cut in pairwise(cuts)]
    assert sum(parts) == weight_bytes(spec) == rank_weight_bytes(spec, None, 1)


def test_a_tied_head_is_on_the_first_and_the_last_stage():
    tied = replace(DENSE, tied_embeddings=True)
    halves = [rank_weight_bytes(tied, "bf16", 1, layers) for layers in (range(1), range(1, 2))]
    assert sum(halves) == weight_bytes(tied) + 2 * EMBEDDING


@given(experts=st.integers(1, 64), data=st.data())
def test_active_parameters_grow_by_one_expert_per_choice(experts, data):
    per_token = data.draw(st.integers(1, experts))
    block = MixtureOfExperts(experts, per_token, 128)
    spec = replace(DENSE, layer_groups=(LayerGroup(3, Attention(4, 2, 64, 64), block),))
    total, active = count_parameters(spec)
    assert total - active == 3 * (experts - per_token) * EXPERT
