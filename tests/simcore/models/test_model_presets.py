"""The models known by name, against the numbers that their publishers and the Hugging Face hub state."""

from dataclasses import replace

import pytest

from simcore.core.errors import UnknownNameError
from simcore.memory.kv_bytes import kv_bytes_per_token
from simcore.models import (
    Attention,
    LatentAttention,
    LinearAttention,
    MixtureOfExperts,
    count_parameters,
    input_embedding_parameters,
    load_model,
    load_preset,
    preset_names,
    weight_bytes,
)

# name: (parameters, KV bytes per token in bf16).
# Parameters: the count of the safetensors files on the Hugging Face hub, where the hub states one. Not so: gemma-3-27b
# (as llama.cpp counts the language model), gpt-oss (as GGUF metadata count them), deepseek-v3 (the hub's 684531386000
# less scales and multi-token prediction), kimi-k2.5 and minimax-m2.5 (worked out from their configurations; 1026.5 and
# 228.7 billion published), qwen3-next (that of Qwen3-Coder-Next, of the same shape without multi-token prediction),
# qwen3.5 (the hub's 403397928944 less vision tower and multi-token prediction), OPT (worked out by hand from
# arXiv:2205.01068, table 1).
# KV bytes: layers (of full attention) x KV heads x (key + value width) x 2, worked out by hand; opt-13b is the 800 KB
# of the PagedAttention paper (arXiv:2309.06180, section 3), llama-3.1-405b, qwen2.5-72b and deepseek-v3 stand in
# "Insights into DeepSeek-V3" (arXiv:2505.09343, table 1).
EXACT = {
    "deepseek-v2-lite": (15_706_484_224, 27 * 576 * 2),
    "deepseek-v3": (671_026_419_200, 70_272),
    "gemma-3-27b": (27_009_346_304, 62 * 16 * 256 * 2),
    "gpt-oss-120b": (116_829_156_672, 36 * 8 * 128 * 2),
    "gpt-oss-20b": (20_914_757_184, 24 * 8 * 128 * 2),
    "kimi-k2.5": (1_026_408_232_448, 61 * 576 * 2),
    "llama-2-13b": (13_015_864_320, 40 * 40 * 256 * 2),
    "llama-2-70b": (68_976_648_192, 327_680),
    "llama-2-7b": (6_738_415_616, 32 * 32 * 256 * 2),
    "llama-3.1-405b": (405_853_388_800, 516_096),
    "llama-3.1-70b": (70_553_706_496, 327_680),
    "llama-3.1-8b": (8_030_261_248, 131_072),
    "minimax-m2.5": (228_689_764_864, 62 * 8 * 256 * 2),
    "mistral-7b": (7_241_732_096, 32 * 8 * 256 * 2),
    "mixtral-8x7b": (46_702_792_704, 32 * 8 * 256 * 2),
    "opt-13b": (
        50_272 * 5_120 + 2_050 * 5_120 + 40 * (12 * 5_120**2 + 13 * 5_120) + 2 * 5_120,
        819_200,
    ),
    "opt-66b": (
        50_272 * 9_216 + 2_050 * 9_216 + 64 * (12 * 9_216**2 + 13 * 9_216) + 2 * 9_216,
        64 * 9_216 * 2 * 2,
    ),
    "phi-3-mini": (3_821_079_552, 32 * 32 * 192 * 2),
    "qwen2.5-72b": (72_706_203_648, 327_680),
    "qwen2.5-7b": (7_615_616_512, 28 * 4 * 256 * 2),
    "qwen3-235b-a22b": (235_093_634_560, 94 * 4 * 256 * 2),
    "qwen3-30b-a3b": (30_532_122_624, 48 * 4 * 256 * 2),
    "qwen3-32b": (32_762_123_264, 64 * 8 * 256 * 2),
    "qwen3-8b": (8_190_735_360, 36 * 8 * 256 * 2),
    "qwen3-next-80b-a3b": (79_674_391_296, 12 * 2 * 512 * 2),
    "qwen3.5-397b-a17b": (396_346_350_336, 15 * 2 * 512 * 2),
    "smollm2-135m": (134_515_008, 30 * 3 * 128 * 2),
    "yi-34b": (34_388_917_248, 60 * 8 * 256 * 2),
}


# Active parameters are counted with the input embedding, of which a token reads one row. The active counts of the
# gpt-oss model card (OpenAI, August 2025, table 1), 5.13 and 3.61 billion, leave out that embedding's 201,088 x 2,880
# parameters and contain the equally many of the output head.
ACTIVE_OF_GPT_OSS = {
    "gpt-oss-120b": (5_710_000_000, 5_130_000_000),
    "gpt-oss-20b": (4_190_000_000, 3_610_000_000),
}


def agrees(count: int, published: int) -> bool:
    """Within half a percent, or within the last digit that was published (3.3 billion: 0.1 billion)."""
    last_digit = 10 ** (len(str(published)) - len(str(published).rstrip("0")))
    return abs(count - published) <= max(0.005 * published, last_digit)


def test_the_table_covers_every_model():
    assert preset_names() == tuple(sorted(EXACT))


@pytest.mark.parametrize(("name", "expected"), [(name, exact[0]) for name, exact in EXACT.items()])
def test_total_parameters_are_exact(name, expected):
    assert count_parameters(load_model(name)).total == expected


@pytest.mark.parametrize(("name", "expected"), [(name, exact[1]) for name, exact in EXACT.items()])
def test_kv_bytes_per_token_are_exact(name, expected):
    assert kv_bytes_per_token(load_model(name)) == expected


@pytest.mark.parametrize("name", EXACT)
def test_counts_agree_with_the_published_ones_and_their_convention(name):
    spec, published = load_model(name), load_preset(name).published
    count = count_parameters(spec)
    active = count.active
    if not published.active_counts_input_embedding:
        active -= input_embedding_parameters(spec)
    assert agrees(count.total, published.total_parameters)
    assert agrees(active, published.active_parameters)


@pytest.mark.parametrize(("name", "ours", "published"), [(name, *counts) for name, counts in ACTIVE_OF_GPT_OSS.items()])
def test_active_parameters_of_gpt_oss_are_the_published_ones_and_the_input_embedding(name, ours, published):
    spec = load_model(name)
    assert not load_preset(name).published.active_counts_input_embedding
    assert load_preset(name).published.active_parameters == published
    assert input_embedding_parameters(spec) == 201_088 * 2_880
    assert count_parameters(spec).active == pytest.approx(ours, abs=5e6)
    assert count_parameters(spec).active - 201_088 * 2_880 == pytest.approx(published, abs=5e6)


@pytest.mark.parametrize("name", EXACT)
def test_only_experts_make_fewer_parameters_active(name):
    spec = load_model(name)
    count = count_parameters(spec)
    routed = any(isinstance(group.feed_forward, MixtureOfExperts) for group in spec.layer_groups)
    assert (count.active < count.total) == routed
    assert hash(spec) == hash(load_model(name))
    assert spec.name == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # metadata.total_size of model.safetensors.index.json on the Hugging Face hub
        ("gpt-oss-20b", 13_761_264_768),
        ("gpt-oss-120b", 65_248_815_744),
        ("qwen3-235b-a22b", 470_187_269_120),
        ("llama-2-7b", 13_476_831_232),
        ("llama-3.1-8b", 16_060_522_496),
    ],
)
def test_weights_take_the_bytes_of_the_published_checkpoint(name, expected):
    assert weight_bytes(load_model(name)) == expected


def test_qwen3_next_with_its_prediction_module_has_as_many_parameters_as_its_repository():
    spec = load_model("qwen3-next-80b-a3b")
    _, full = spec.layer_groups
    deeper = replace(spec, layer_groups=(*spec.layer_groups, replace(full, count=1)), layer_order=())
    # One more layer of full attention, a projection from twice the width, and three norms.
    module = 2 * 2048 * 2048 + 3 * 2048
    assert count_parameters(deeper).total + module == 81_324_862_720


def test_qwen3_coder_next_in_fp8_has_as_many_scales_as_its_repository():
    # Numbers in the safetensors files of Qwen3-Coder-Next-FP8, less those of Qwen3-Coder-Next: a scale per 128 x 128.
    # They are what they are only with gates of heads and shared experts, routers and embeddings left in 16 bits.
    scales = 79_679_212_800 - 79_674_391_296
    spec = load_model("qwen3-next-80b-a3b")
    assert weight_bytes(spec, "fp8-block") == weight_bytes(spec) - scales * 128 * 128 + 4 * scales


def test_qwen35_takes_the_bytes_of_its_checkpoint_but_for_numbers_in_32_bits():
    # 792692717952 bytes of the language model, of which the decay and the norm of linear layers are in fp32.
    fp32 = 45 * (64 + 128)
    assert weight_bytes(load_model("qwen3.5-397b-a17b")) == 792_692_717_952 - 2 * fp32


def test_windows_are_where_the_models_have_them():
    def windows(name):
        return [(group.count, group.attention.window_tokens) for group in load_model(name).layer_groups]

    assert windows("gemma-3-27b") == [(52, 1024), (10, None)]
    assert windows("gpt-oss-20b") == [(12, 128), (12, None)]
    assert windows("mistral-7b") == [(32, 4096)]
    assert windows("phi-3-mini") == [(32, 2047)]
    assert windows("qwen2.5-7b") == [(28, None)]


def test_the_traits_of_each_family_are_read():
    def only_attention(name):
        (group,) = load_model(name).layer_groups
        return group.attention

    assert only_attention("qwen2.5-7b").projection_bias
    assert not only_attention("qwen2.5-7b").output_bias
    assert only_attention("qwen3-32b") == Attention(64, 8, 128, 128, query_key_norm=True)
    assert only_attention("opt-13b") == Attention(
        40, 40, 128, 128, projection_bias=True, output_bias=True, rotary=False
    )
    gemma, opt, deepseek = load_model("gemma-3-27b"), load_model("opt-13b"), load_model("deepseek-v3")
    assert (gemma.norms_per_layer, gemma.tied_embeddings, gemma.dtype) == (4, True, "bf16")
    assert (opt.norm_bias, opt.learned_positions, opt.tied_embeddings, opt.dtype) == (True, 2050, True, "fp16")
    assert [group.count for group in deepseek.layer_groups] == [3, 58]
    assert deepseek.dtype == "fp8-block"
    lite = load_model("deepseek-v2-lite")
    assert all(group.attention == LatentAttention(16, 512, None, 128, 64, 128) for group in lite.layer_groups)
    assert lite.layer_groups[1].feed_forward == MixtureOfExperts(64, 6, 1408, shared_intermediate_size=2816)
    assert all(group.attention.sinks for group in load_model("gpt-oss-120b").layer_groups)
    linear, full = load_model("qwen3.5-397b-a17b").layer_groups
    assert (linear.count, linear.attention) == (45, LinearAttention(16, 64, 128, 128, 4, apart=True))
    assert (full.count, full.attention) == (15, Attention(32, 2, 256, 256, query_key_norm=True, output_gate=True))
    assert full.feed_forward == linear.feed_forward == MixtureOfExperts(512, 10, 1024, 1024, shared_gate=True)


def test_every_preset_says_where_its_facts_come_from():
    for name in preset_names():
        preset = load_preset(name)
        assert "/" in preset.repository
        assert preset.source
        assert preset.published.source


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match=r"Did you mean 'llama-3\.1-8b'\?") as caught:
        load_model("lama-3.1-8b")
    assert caught.value.field == "model"
