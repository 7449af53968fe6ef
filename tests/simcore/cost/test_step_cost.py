from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.errors import InputError
from simcore.core.request import Request
from simcore.cost import decode_attention
from simcore.cost.assumptions import HostOverhead, RooflineEfficiency
from simcore.cost.calibrated import Curve, Source, load_profile
from simcore.cost.compiled_attention import attended_tokens
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.roofline import Roofline, attended_pairs
from simcore.cost.step_cost import StepCost
from simcore.hardware import load_accelerator
from simcore.memory.kv_bytes import KvFormat
from simcore.models import load_model
from tests.simcore.cost.step_parts import head_ns, layers_ns, terms_by_name, whole

MODELS = ("llama-3.1-8b", "mistral-7b", "gemma-3-27b", "deepseek-v2-lite", "gpt-oss-20b")


def cost_of(model, accelerator="h100-sxm", ranks=1, efficiency=None, dtype="bf16"):
    roofline = Roofline.of(load_accelerator(accelerator), efficiency or RooflineEfficiency(), dtype)
    return StepCost(load_model(model), KernelPrices(roofline), HostOverhead(), dtype, KvFormat(), ranks)


COSTS = {model: cost_of(model) for model in MODELS}


def pool_of(cost, contexts):
    pool = DecodePool(16, cost.window_tokens)
    for tokens in contexts:
        pool.join(tokens)
    return pool


def prefill_ns(cost, tokens, computed_tokens=0):
    request = Request(0, 0, tokens + computed_tokens, computed_tokens=computed_tokens)
    plan = BatchPlan()
    plan.add_chunk(request, tokens)
    return cost.step_ns(plan, pool_of(cost, []), 1)


@settings(deadline=None, derandomize=True)
@given(
    computed=st.integers(0, 60),
    tokens=st.integers(1, 60),
    window=st.one_of(st.none(), st.integers(1, 70)),
)
def test_attended_pairs_are_those_counted_one_by_one(computed, tokens, window):
    """A token at position p sees positions up to its own, the last ``window`` of them."""
    pairs = sum(min(position + 1, window or position + 1) for position in range(computed, computed + tokens))
    assert attended_pairs(computed, tokens, window) == pairs
    assert attended_tokens(computed, window) == attended_pairs(computed, 1, window)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    model=st.sampled_from(MODELS),
    contexts=st.lists(st.integers(1, 6000), min_size=1, max_size=40),
    steps=st.integers(1, 300),
)
def test_steps_priced_together_cost_what_each_costs_alone(model, contexts, steps):
    """One by one, as a list and as an array: the same to the bit."""
    cost = COSTS[model]
    pool = pool_of(cost, contexts)
    steps = min([steps, *(window.steps_to_crossing(0) for window in pool.windows)])
    together = {}
    for limit in (0, 10**9):  # arrays always, and never
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decode_attention, "_SCALAR_STEPS", limit)
            together[limit] = [int(duration) for duration in cost.decode_steps_ns(pool, steps)]
    singly = []
    for _ in range(steps):
        singly += cost.decode_steps_ns(pool, 1)
        pool.advance(1)
    assert together[0] == together[10**9] == singly


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    contexts=st.lists(st.integers(1, 6000), min_size=1, max_size=10),
    steps=st.integers(1, 200),
    share=st.floats(0.001, 1.2),
    offset_ns=st.integers(-1, 1),
    more=st.integers(0, 2),
)
def test_a_jump_ends_so_many_steps_after_the_first_that_reaches_its_limit(contexts, steps, share, offset_ns, more):
    cost = COSTS["llama-3.1-8b"]
    pool = pool_of(cost, contexts)
    ends_ns = np.cumsum([int(duration) for duration in cost.decode_steps_ns(pool, steps)])
    # A limit about the end of some step, a nanosecond before or after it, or beyond all of them.
    within_ns = int(ends_ns[min(int(share * steps), steps - 1)]) + offset_ns if share < 1 else int(2 * ends_ns[-1])
    expected = min(int(np.searchsorted(ends_ns, within_ns)) + 1 + more, steps)
    for limit in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decode_attention, "_SCALAR_STEPS", limit)
            assert len(cost.decode_steps_ns(pool, steps, within_ns, more)) == expected


@pytest.mark.parametrize("model", MODELS)
def test_more_work_never_takes_less_time(model):
    cost = COSTS[model]
    prefills = [prefill_ns(cost, tokens) for tokens in (1, 2, 7, 64, 65, 500, 2048, 8192)]
    assert prefills == sorted(prefills)
    chunks = [prefill_ns(cost, 256, computed) for computed in (0, 1, 100, 1000, 4000)]
    assert chunks == sorted(chunks)
    batches = [cost.decode_steps_ns(pool_of(cost, [500] * size), 1)[0] for size in (1, 2, 8, 64, 256)]
    assert batches == sorted(batches)
    contexts = [cost.decode_steps_ns(pool_of(cost, [tokens] * 32), 1)[0] for tokens in (1, 100, 1000, 1024, 5000)]
    assert contexts == sorted(contexts)


def test_a_full_window_costs_no_more_however_long_the_context():
    cost = COSTS["mistral-7b"]  # 4096 in every layer
    full, longer = (cost.decode_steps_ns(pool_of(cost, [tokens] * 8), 30) for tokens in (4096, 20_000))
    assert [int(duration) for duration in full] == [int(duration) for duration in longer]
    assert len(set(map(int, full))) == 1
    assert prefill_ns(cost, 8, computed_tokens=4096) == prefill_ns(cost, 8, computed_tokens=25_000)
    without_window = COSTS["llama-3.1-8b"]
    assert prefill_ns(without_window, 8, computed_tokens=25_000) > prefill_ns(without_window, 8, computed_tokens=4096)


def test_a_decode_step_of_llama_by_hand():
    """Batch 1, context 1000: bound by memory, but for floors of 2.5 us; the H100 reads 3.35 TB/s, 83% of it reached."""
    cost = COSTS["llama-3.1-8b"]
    per_layer_weights = [4096 * (4096 + 2048), 4096 * 4096, 4096 * 2 * 14336, 4096 * 14336]
    activations = [4096 + 6144, 8192, 4096 + 2 * 14336, 14336 + 4096]
    reading_s = sum(2 * (w + a) for w, a in zip(per_layer_weights, activations, strict=True)) / (3.35e12 * 0.83)
    floors_s = 5 * 2.5e-6  # two norms, rotary embedding, KV write, activation
    context_bytes = 1001 * 8 * 2 * 128 * 2 + 32 * 256 * 2
    attention_s = max(context_bytes / (3.35e12 * 0.82), 2.5e-6)
    head_s = 2 * (4096 * 128256 + 4096 + 128256) / (3.35e12 * 0.83) + 3 * 2.5e-6  # embedding, last norm, sampling
    host_s = 0.5e-3 + 5e-6
    expected_s = 32 * (reading_s + floors_s + attention_s) + head_s + host_s
    assert cost.decode_steps_ns(pool_of(cost, [1000]), 1)[0] == pytest.approx(expected_s * 1e9, abs=1)


def test_every_kernel_of_a_small_step_takes_the_floor():
    """Qwen3-30B-A3B at batch 1 on an H200: 1,010 kernels in layers, two of the head; 4.4 ms by measured kernels."""
    cost = cost_of("qwen3-30b-a3b", "h200-sxm")
    assert cost.host.launches == 48 * (2 + 1 + 2 + 2 + 1 + 1 + 1 + 1 + 10) + 2 == 1010
    floor_s = RooflineEfficiency().kernel_floor_s
    for term in cost.token_terms:
        assert term.seconds(1) >= term.launches * floor_s * (1 - 1e-12)
    experts = terms_by_name(cost)["experts"]
    read_s = 8 * 3 * 2048 * 768 * 2 / (4.8e12 * 0.83)
    assert experts.seconds(1) / 48 == pytest.approx(read_s + 8 * floor_s, rel=0.01)  # the GEMMs, and eight small ones
    step_s = (cost.decode_steps_ns(pool_of(cost, [500]), 1)[0] - cost.host.between_steps_ns(1)) / 1e9
    assert 3.4e-3 < step_s < 4.4e-3


def test_latent_and_linear_attention_take_the_floor_of_all_their_kernels():
    latent = COSTS["deepseek-v2-lite"].compiled_attention[0]
    assert latent.decodes_ns(1, 2, False) == pytest.approx(27 * 7 * 2500)
    assert latent.chunks_ns([(1, 0)], False) == pytest.approx(27 * 7 * 2500)
    (linear,) = cost_of("qwen3-next-80b-a3b").linear_attention
    assert linear.decodes_ns(1) == pytest.approx(36 * 3 * 2500, rel=0.3)
    assert linear.chunks_ns([(1, 0)]) == pytest.approx(36 * 10 * 2500)


def test_a_long_prefill_of_llama_is_bound_by_arithmetic():
    cost = COSTS["llama-3.1-8b"]
    tokens = 8192
    weights = 32 * (2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    linear_s = 2 * weights * tokens / (989.4e12 * 0.78)
    attention_s = 32 * 4 * 4096 * tokens * (tokens + 1) / 2 / (989.4e12 * 0.50)
    norms, rotary_and_write, activation = 2 * 4 * 4096, 2 * (4096 + 2048), 3 * 14336  # norms add the residual too
    around = 2 * 4096 + 4 * 4096  # the embedding and the last norm
    elementwise_s = 2 * tokens * (32 * (norms + rotary_and_write + activation) + around) / (3.35e12 * 0.83)
    assert prefill_ns(cost, tokens) / 1e9 == pytest.approx(linear_s + attention_s + elementwise_s, rel=0.005)


def test_two_ranks_pay_two_all_reduces_a_layer():
    one, two = cost_of("llama-3.1-70b"), cost_of("llama-3.1-70b", ranks=2)
    all_reduce = two.prices.collective("all_reduce", 2)
    reductions_s = (1 + 2 * 80) * all_reduce.seconds(4096 * 8192 * 2)  # the first of the embedding
    names = ("embedding", "norm", "final_norm")
    whole_s = sum(term.seconds(4096) for term in two.token_terms if term.name in names)
    halved_s = (layers_ns(one, 4096) / 1e9 - whole_s) / 2
    assert layers_ns(two, 4096) / 1e9 == pytest.approx(halved_s + whole_s + reductions_s, rel=0.002)


def test_ranks_bring_the_logits_of_sampled_rows_together():
    one, two = cost_of("llama-3.1-70b"), cost_of("llama-3.1-70b", ranks=2)
    gather = two.prices.collective("all_gather", 2)
    halves, sampling = (terms_by_name(two)[name] for name in ("head", "sampling"))
    alone_s = halves.seconds(64) + sampling.seconds(64)
    assert head_ns(two, 64) / 1e9 == pytest.approx(alone_s + gather.seconds(64 * 128256 * 2))
    assert "logits_gather" not in terms_by_name(one)


def test_nothing_is_priced_for_nothing():
    roofline = Roofline.of(load_accelerator("h100-sxm"), RooflineEfficiency(), "bf16")
    for term in (*COSTS["gpt-oss-20b"].token_terms, *PROFILED["llama-3.1-8b", "bf16"].token_terms):
        assert term.seconds(0) == term.flops(0) == term.bytes(0) == 0
        assert term.operator is None or roofline.operator_s(term.operator, 0) == 0


def test_a_dtype_without_tensor_cores_is_computed_in_16_bits():
    a100, h100 = load_accelerator("a100-sxm-80gb"), load_accelerator("h100-sxm")
    assert Roofline.of(a100, RooflineEfficiency(), "fp8").matmul_flops_per_s == a100.peak_flops_per_s["bf16"]
    assert Roofline.of(h100, RooflineEfficiency(), "fp8").matmul_flops_per_s == h100.peak_flops_per_s["fp8"]
    assert Roofline.of(h100, RooflineEfficiency(), "fp8").attention_flops_per_s == h100.peak_flops_per_s["bf16"]


def test_an_accelerator_without_rates_is_refused():
    with pytest.raises(InputError, match="bf16, fp16 or fp32"):
        Roofline.of(replace(load_accelerator("h100-sxm"), peak_flops_per_s={}), RooflineEfficiency(), "bf16")


PROFILED = {
    (model, kv_dtype): StepCost(
        load_model(model),
        KernelPrices(
            Roofline.of(load_accelerator("h200-sxm"), RooflineEfficiency(), "bf16"),
            load_profile("h200-sxm", "vllm-0.19.0"),
        ),
        HostOverhead(),
        "bf16",
        KvFormat(kv_dtype),
        ranks=2,
    )
    for model, kv_dtype in (
        ("llama-3.1-8b", "bf16"),
        ("gpt-oss-20b", "fp8"),
        ("mistral-7b", "bf16"),
        ("phi-3-mini", "bf16"),
    )
}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    cost=st.sampled_from(list(PROFILED.values())),
    contexts=st.lists(st.one_of(st.integers(1, 300), st.integers(1, 200_000)), min_size=1, max_size=40),
    steps=st.integers(1, 300),
)
def test_calibrated_steps_are_the_same_together_and_alone_and_never_get_cheaper(cost, contexts, steps):
    pool = pool_of(cost, contexts)
    steps = min([steps, *(window.steps_to_crossing(0) for window in pool.windows)])
    together = {}
    for limit in (0, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(decode_attention, "_SCALAR_STEPS", limit)
            together[limit] = [int(duration) for duration in cost.decode_steps_ns(pool, steps)]
    singly = []
    for _ in range(steps):
        singly += cost.decode_steps_ns(pool, 1)
        pool.advance(1)
    assert together[0] == together[10**9] == singly == sorted(singly)


def test_a_profile_prices_what_it_has_and_the_roofline_the_rest():
    cost, profile = PROFILED["llama-3.1-8b", "bf16"], load_profile("h200-sxm", "vllm-0.19.0")
    by_name = {name: term.price for name, term in terms_by_name(cost).items()}
    assert by_name["qkv_projection"].seconds(100) == profile.gemm("bf16", 3072, 4096).seconds(100)
    assert by_name["mlp_down"].seconds(7) == profile.gemm("bf16", 4096, 7168).seconds(7)
    assert by_name["norm"].source is Source.ROOFLINE
    assert {price.source for price in by_name.values()} == {Source.CALIBRATED, Source.ROOFLINE}
    summed = profile.collective("all_reduce", "custom_graph", 2)
    assert by_name["all_reduce"].seconds(3) == summed.seconds(3 * 4096 * 2)
    attention = profile.context_attention("bf16", 16, 4, 128)
    rest_ns = layers_ns(cost, 100) + head_ns(cost, 1) + cost.host_ns(whole(100, 1, 1))
    expected_s = 32 * attention.seconds(100, 5000) + rest_ns / 1e9
    assert prefill_ns(cost, 100, 5000) / 1e9 == pytest.approx(expected_s, abs=1e-9)


def test_attention_that_was_not_measured_goes_by_roofline():
    """Phi-3's head dimension of 96 was not; of Mistral's window of 4096 there is full attention."""
    calibrated = PROFILED["phi-3-mini", "bf16"].compiled_attention[0].calibrated
    assert (calibrated.context, calibrated.generation, calibrated.mixed) == (None, None, None)
    assert PROFILED["mistral-7b", "bf16"].compiled_attention[0].calibrated.context.of_full
    assert all(attention.calibrated.generation for attention in PROFILED["gpt-oss-20b", "fp8"].compiled_attention)


def test_decodes_beside_a_chunk_take_the_mixed_price_where_there_is_one():
    profile = load_profile("rtx-pro-6000-blackwell", "vllm-0.19.0")
    roofline = Roofline.of(load_accelerator("rtx-pro-6000-blackwell"), RooflineEfficiency(), "bf16")
    prices = KernelPrices(roofline, profile)
    cost = StepCost(load_model("llama-3.1-8b"), prices, HostOverhead(), "bf16", KvFormat(), 1)
    pool, plan = pool_of(cost, [1000, 2000, 3000]), BatchPlan(decoding=3)
    plan.add_chunk(Request(0, 0, 512), 512)
    shape = ("bf16", 32, 8, 128)
    context = profile.context_attention(*shape)
    attention_s = profile.mixed_generation(*shape).seconds(3, 6003) + context.seconds(512) - context.curves[0].at(0)
    rest_ns = layers_ns(cost, 515) + head_ns(cost, 4) + cost.host_ns(whole(515, 4, 4))
    assert cost.step_ns(plan, pool, 4) == pytest.approx(32 * attention_s * 1e9 + rest_ns, abs=1)


@settings(deadline=None, derandomize=True)
@given(
    gaps=st.lists(st.integers(1, 50), min_size=1, max_size=6),
    values=st.lists(st.floats(1e-6, 1.0), min_size=7, max_size=7),
    start=st.integers(0, 200),
    growth=st.integers(0, 30),
    steps=st.integers(1, 40),
)
def test_a_curve_along_steps_is_the_curve_at_each(gaps, values, start, growth, steps):
    curve = Curve(np.cumsum([1, *gaps]), values[: len(gaps) + 1])
    points = [start + growth * step for step in range(1, steps + 1)]
    assert curve.along_steps(start, growth, steps) == [curve.at(x) for x in points] == curve.at_many(points).tolist()


def test_an_eager_step_takes_as_long_as_launching_its_kernels():
    roofline = Roofline.of(load_accelerator("h100-sxm"), RooflineEfficiency(), "bf16")
    model, prices = load_model("llama-3.1-8b"), KernelPrices(roofline)

    def cost(mixed_graphs):
        host = HostOverhead(
            step_s=0.0, per_request_s=0.0, launch_s=1e-3, max_cudagraph_tokens=64, mixed_graphs=mixed_graphs
        )
        return StepCost(model, prices, host, "bf16", KvFormat(), 1)

    of_a_layer = 2 + 1 + 2 + 1 + 1 + 1 + 1 + 1  # norms, QKV, rotary, attention, output, up, activation, down
    launches_ns = (32 * of_a_layer + 2) * 1e6  # and the embedding and the last norm
    for graphs, shape, eager in (
        (True, (64, 64, 64), False),
        (True, (64, 2, 9), False),
        (True, (65, 65, 65), True),
        (False, (64, 64, 64), False),
        (False, (64, 2, 9), True),
    ):
        tested = cost(graphs)
        tokens, rows, requests = shape
        kernels_ns = layers_ns(tested, tokens) + head_ns(tested, rows)
        assert tested.host_ns(whole(*shape)) == pytest.approx(launches_ns - kernels_ns if eager else 0.0)
        assert tested.host.launching_ns(tokens, requests, kernels_ns) == tested.host_ns(whole(*shape))


def test_gemms_are_no_faster_than_a_loaded_device_lets_them_be():
    prices = PROFILED["llama-3.1-8b", "bf16"].prices
    sustained = prices.roofline.accelerator.sustained_flops_per_s["bf16"]
    operator = terms_by_name(PROFILED["llama-3.1-8b", "bf16"])["mlp_up"].operator
    assert prices.operator(operator).seconds(8192) >= operator.flops(8192) / sustained
    alone = prices.profile.gemm("bf16", operator.shape.outputs, operator.shape.inputs)
    assert prices.operator(operator).seconds(8) == alone.seconds(8)
