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


@pytest.mark.parametrize("name", preset_names())
def test_parameters_and_kv_bytes_are_exact(name):
    spec, exact = load_model(name), load_preset(name).exact
    assert count_parameters(spec).total == exact.parameters
    assert kv_bytes_per_token(spec) == exact.kv_bytes_per_token


@pytest.mark.parametrize("name", preset_names())
def test_nothing_of_a_configuration_goes_unread(name):
    assert not [notice for notice in load_model(name).notices if "left unread" in notice]


@pytest.mark.parametrize("name", preset_names())
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


@pytest.mark.parametrize("name", preset_names())
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
