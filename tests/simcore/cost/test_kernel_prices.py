"""Which price a kernel takes."""

from dataclasses import replace

import pytest

from simcore.core.errors import UnknownNameError
from simcore.cost.assumptions import ROUTING, RooflineEfficiency
from simcore.cost.attention import attention_work
from simcore.cost.calibrated import Source, available_profiles, load_profile
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.model_operators import layer_operators
from simcore.cost.prices import RooflinePrice
from simcore.cost.roofline import Roofline
from simcore.engines import load_engine
from simcore.hardware import load_accelerator
from simcore.memory.kv_bytes import KvFormat
from simcore.models import load_model

H100 = load_accelerator("h100-sxm")
MEASURED = load_profile("h100-sxm", "vllm-0.24.0")


def operator(model, name, dtype, ranks=1):
    return next(found for found in layer_operators(load_model(model), dtype, ranks) if found.name == name)


def prices(dtype, **choices):
    vllm = load_engine("vllm-v1").kernels
    return KernelPrices(Roofline.of(H100, RooflineEfficiency(), dtype), MEASURED, engine=vllm, **choices)


def test_experts_run_by_the_kernels_asked_for_at_the_widths_they_pad_to():
    """GPT-OSS on two ranks: 2880 wide are padded to 3072, and 1440 of a rank's experts to 1536."""
    experts = operator("gpt-oss-120b", "experts", "mxfp4", ranks=2)
    price = prices("mxfp4", expert_kernels="marlin").operator(experts)
    padded = MEASURED.moe("mxfp4-marlin", 3072, 3072, 4, 128, tensor_parallel=2, distribution=ROUTING)
    for tokens in (1, 64, 8192):
        assert price.seconds(tokens) == pytest.approx(padded.seconds(tokens))


def test_marlin_widens_weights_first_so_that_it_falls_behind_on_long_prompts_alone():
    experts = operator("gpt-oss-120b", "experts", "mxfp4", ranks=2)
    default, marlin = (prices("mxfp4", expert_kernels=name).operator(experts) for name in ("auto", "marlin"))
    assert marlin.seconds(8192) > 1.5 * default.seconds(8192)
    assert marlin.seconds(8) < 1.1 * default.seconds(8)


@pytest.mark.parametrize(("dtype", "known"), [("mxfp4", "auto, marlin"), ("bf16", "auto")])
def test_kernels_that_the_profile_does_not_have_are_refused(dtype, known):
    with pytest.raises(UnknownNameError, match=rf"pricing\.expert_kernels.*'marlyn'.*{known}"):
        prices(dtype, expert_kernels="marlyn").operator(operator("gpt-oss-120b", "experts", dtype))


@pytest.mark.parametrize(("dtype", "few", "many"), [("int8", 2.0, 1.4), ("int4", 2.6, 1.0)])
def test_products_of_integers_are_priced_as_measured(dtype, few, many):
    """A single token waits for the weights alone; many in int8 are multiplied as integers, in int4 as 16-bit floats."""
    h200, profile = load_accelerator("h200-sxm"), load_profile("h200-sxm", "trtllm-1.3.0rc20")

    def price(weights):
        kernels = KernelPrices(Roofline.of(h200, RooflineEfficiency(), weights), profile)
        return kernels.operator(operator("llama-3.1-8b", "mlp_up", weights))

    measured, wide = price(dtype), price("bf16")
    small, plain = (profile.gemm(name, 128, 128).seconds(64) for name in (dtype, "bf16"))
    quantising_s = small - plain if dtype == "int8" else 0.0  # of int4 inputs are not
    assert measured.seconds(64) == pytest.approx(profile.gemm(dtype, 28672, 4096).seconds(64) - quantising_s)
    assert wide.seconds(1) / measured.seconds(1) == pytest.approx(few, rel=0.1)
    assert wide.seconds(8192) / measured.seconds(8192) == pytest.approx(many, rel=0.1)


def test_a_loaded_device_multiplies_integers_at_their_own_rate():
    """Sustained rates were measured of bf16 and fp8; int8, whose peak is fp8's, was held to bf16's once."""
    h200, profile = load_accelerator("h200-sxm"), load_profile("h200-sxm", "trtllm-1.3.0rc20")
    found = {weights: operator("llama-3.1-70b", "mlp_up", weights) for weights in ("bf16", "fp16", "fp8", "int8")}
    seconds = {
        weights: KernelPrices(Roofline.of(h200, RooflineEfficiency(), weights), profile).operator(one).seconds(8192)
        for weights, one in found.items()
    }
    flops = found["bf16"].flops(8192)
    assert seconds["bf16"] == seconds["fp16"] == pytest.approx(flops / 685e12)
    assert seconds["fp8"] == pytest.approx(flops / 1240e12)
    assert seconds["int8"] == pytest.approx(profile.gemm("int8", 57344, 8192).seconds(8192), rel=0.01)
    assert flops / 1240e12 < seconds["int8"] < 0.7 * seconds["bf16"]
    throttled = replace(h200, sustained_flops_per_s={"bf16": 685e12, "fp8": 500e12})
    kernels = KernelPrices(Roofline.of(throttled, RooflineEfficiency(), "int8"), profile)
    assert kernels.operator(found["int8"]).seconds(8192) == pytest.approx(flops / 500e12)


@pytest.mark.parametrize(
    "accelerator", ["a100-sxm-80gb", "b200", "h100-sxm", "h200-sxm", "l40s", "rtx-pro-6000-blackwell"]
)
def test_decodes_beyond_what_was_measured_read_no_faster_than_memory_is(accelerator):
    datasheet = load_accelerator(accelerator)
    (work,) = attention_work(load_model("llama-3.1-8b"), KvFormat(), 1)
    kernels = KernelPrices(
        Roofline.of(datasheet, RooflineEfficiency(), "bf16"),
        load_profile(accelerator, available_profiles(accelerator)[-1]),
    )
    generation = kernels.attention(work).generation
    for batch in (64, 256, 1024):
        for context in (16_384, 32_768, 65_536, 262_144):  # a shape of half as many heads was measured up to 16,384
            assert context == 16_384 or not generation.inside(batch, batch * context)
            moved = batch * context * work.kv_bytes_per_token
            assert moved / generation.seconds(batch, batch * context) < datasheet.memory_bandwidth_bytes_per_s


def test_a_token_beyond_the_measured_contexts_takes_what_memory_takes_to_read_it_at_least():
    """A single decode of 16,384 tokens was measured in the cache of an RTX 4090, faster than its memory is."""
    datasheet = load_accelerator("rtx-4090")
    (work,) = attention_work(load_model("llama-3.1-8b"), KvFormat(), 1)
    kernels = KernelPrices(
        Roofline.of(datasheet, RooflineEfficiency(), "bf16"), load_profile("rtx-4090", "vllm-0.19.0")
    )
    curve = kernels.attention(work).generation.over_total_context(1).curve
    further = 100_000
    taken_s = curve.at(curve.last + further) - curve.at(curve.last)
    assert taken_s >= further * work.kv_bytes_per_token / datasheet.memory_bandwidth_bytes_per_s * (1 - 1e-9)


def test_a_router_in_32_bits_is_priced_at_their_rate():
    """MiniMax-M2 computes its router in fp32: 2 x 3072 x 256 operations a token at 78% of 67 TFLOP/s."""
    router = operator("minimax-m2.5", "router", "fp8-block", ranks=4)
    assert router.weight_bytes == 4 * 3072 * 256
    price = prices("fp8-block").operator(router)
    assert isinstance(price, RooflinePrice)
    rate = RooflineEfficiency().matmul_compute * H100.peak_flops_per_s["fp32"]
    assert price.seconds(8192) == pytest.approx(8192 * 2 * 3072 * 256 / rate)


def test_where_an_engine_has_one_kind_of_kernels_they_are_its_default_ones():
    """vLLM runs mxfp4 experts by Marlin's kernels alone on an L40S."""
    profile = load_profile("l40s", "vllm-0.24.0")
    assert [name for name in profile.expert_dtypes if name.startswith("mxfp4")] == ["mxfp4-marlin"]
    roofline = Roofline.of(load_accelerator("l40s"), RooflineEfficiency(), "mxfp4")
    price = KernelPrices(roofline, profile).operator(operator("gpt-oss-20b", "experts", "mxfp4"))
    assert not isinstance(price, RooflinePrice)


def prices_on(accelerator, profile, **choices):
    roofline = Roofline.of(load_accelerator(accelerator), RooflineEfficiency(), "bf16")
    return KernelPrices(roofline, load_profile(accelerator, profile), **choices)


def test_an_operator_of_two_measured_norms_takes_twice_as_long_as_one():
    norm = operator("llama-3.1-8b", "norm", "bf16")
    kernels = prices_on("rtx-4090", "vllm-0.19.0")
    price = kernels.operator(norm)
    launch = kernels.profile.elementwise.price("norm", 4 * 4096 * 2)
    assert price.source == Source.IMPORTED
    assert price.seconds(0) == 0.0
    for tokens in (1, 100, 2048):
        assert price.inside(tokens)
        assert price.seconds(tokens) == pytest.approx(2 * launch.seconds(4 * 4096 * 2 * tokens))
        assert price.errors_at(tokens) == kernels.profile.errors["elementwise"]["norm"]
    assert price.seconds(512) == pytest.approx(2 * 8.309e-6, rel=0.02)  # as measured


@pytest.mark.parametrize("name", ["norm", "mlp_activation"])
def test_bytes_beyond_the_measured_ones_move_at_the_rate_of_memory(name):
    found = operator("llama-3.1-8b", name, "bf16")
    kernels = prices_on("rtx-4090", "vllm-0.19.0")
    price = kernels.operator(found)
    assert not price.inside(2049)
    beyond_s = price.seconds(8192) - price.seconds(2048)
    assert beyond_s == pytest.approx(kernels.roofline.memory_s(found.bytes(8192) - found.bytes(2048)))


def test_a_width_that_was_not_measured_takes_the_nearest_at_the_same_bytes():
    kernels = prices_on("rtx-4090", "vllm-0.19.0")
    price = kernels.operator(operator("llama-3.1-70b", "norm", "bf16"))  # twice as wide as the 8B
    assert not price.inside(64)
    assert price.seconds(64) == kernels.operator(operator("llama-3.1-8b", "norm", "bf16")).seconds(128)


def test_what_elementwise_measurements_lack_is_left_to_the_roofline():
    kernels = prices_on("rtx-4090", "vllm-0.19.0")
    for model, name in (("llama-3.1-8b", "rotary_and_kv_write"), ("qwen3-32b", "query_key_norm")):
        assert isinstance(kernels.operator(operator(model, name, "bf16")), RooflinePrice)
    assert isinstance(prices("bf16").operator(operator("llama-3.1-8b", "norm", "bf16")), RooflinePrice)


def test_norms_are_priced_by_another_profile_of_the_accelerator():
    device = "rtx-pro-6000-blackwell"
    filled = prices_on(device, "vllm-0.24.0", fallback_profiles={"elementwise": load_profile(device, "vllm-0.19.0")})
    own = prices_on(device, "vllm-0.19.0")
    for name in ("norm", "query_key_norm", "mlp_activation"):
        found = operator("qwen3-32b", name, "bf16")
        assert filled.operator(found).seconds(300) == own.operator(found).seconds(300)
        assert own.operator(found).inside(300)


def test_quantising_the_input_is_no_part_of_a_product():
    """TensorRT-LLM's module for fp8 scales its input anew: four kernels that a checkpoint with scales does not need."""
    h200, profile = load_accelerator("h200-sxm"), load_profile("h200-sxm", "trtllm-1.3.0rc20")
    kernels = KernelPrices(Roofline.of(h200, RooflineEfficiency(), "fp8"), profile)
    found = kernels.operator(operator("llama-3.1-70b", "mlp_up", "fp8"))
    measured = profile.gemm("fp8", 57344, 8192)
    assert 8e-6 < measured.seconds(1) - found.seconds(1) < 11e-6
    weight_bytes = 57344 * 8192
    assert found.seconds(1) > weight_bytes / h200.memory_bandwidth_bytes_per_s
    assert found.inside(1)
    assert found.errors_at(1) is measured.errors


def test_shared_experts_beside_routed_ones_take_the_bandwidth_of_their_weights():
    h200, profile = load_accelerator("h200-sxm"), load_profile("h200-sxm", "sglang-0.5.14")
    kernels = KernelPrices(Roofline.of(h200, RooflineEfficiency(), "fp8-block"), profile)
    alone = operator("deepseek-v3", "shared_expert_up", "fp8-block")
    beside = replace(alone, beside_tokens=256)
    assert kernels.operator(beside).seconds(256) == pytest.approx(kernels.roofline.memory_s(alone.bytes(256)))
    assert kernels.operator(beside).seconds(256) < kernels.operator(alone).seconds(256)
    assert kernels.operator(beside).seconds(257) == kernels.operator(alone).seconds(257)


@pytest.mark.parametrize(
    ("accelerator", "weights", "share"), [("a100-sxm-80gb", "int4", 0.5), ("a100-sxm-80gb", "bf16", 0.83)]
)
def test_weights_that_are_widened_reach_less_of_the_bandwidth(accelerator, weights, share):
    datasheet = load_accelerator(accelerator)
    kernels = KernelPrices(Roofline.of(datasheet, RooflineEfficiency(), weights))
    found = operator("llama-3.1-8b", "mlp_up", weights)
    rate = found.bytes(1) / kernels.operator(found).seconds(1)
    assert rate == pytest.approx(share * datasheet.memory_bandwidth_bytes_per_s)


def test_four_bits_are_widened_where_the_device_does_not_multiply_in_them():
    experts = operator("gpt-oss-120b", "experts", "mxfp4")
    seconds = {}
    for name in ("a100-sxm-80gb", "b200"):
        datasheet = load_accelerator(name)
        roofline = Roofline.of(datasheet, RooflineEfficiency(), "mxfp4")
        seconds[name] = (roofline.operator_s(experts, 64) * datasheet.memory_bandwidth_bytes_per_s, roofline)
    assert seconds["a100-sxm-80gb"][0] / seconds["b200"][0] == pytest.approx(0.83 / 0.5, rel=0.1)
