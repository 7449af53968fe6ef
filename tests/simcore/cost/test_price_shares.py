import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.cost.assumptions import HostOverhead, RooflineEfficiency
from simcore.cost.calibrated import load_profile
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.price_shares import RangeCounter, price_shares
from simcore.cost.roofline import Roofline
from simcore.cost.step_cost import StepCost
from simcore.cost.work import WorkCounter
from simcore.hardware import load_accelerator
from simcore.memory.kv_bytes import KvFormat
from simcore.models import load_model


def cost_of(model, profiled=True):
    roofline = Roofline.of(load_accelerator("h200-sxm"), RooflineEfficiency(), "bf16")
    profile = load_profile("h200-sxm", "vllm-0.19.0") if profiled else None
    return StepCost(load_model(model), KernelPrices(roofline, profile), HostOverhead(), "bf16", KvFormat(), 1)


COSTS = {model: cost_of(model) for model in ("llama-3.1-8b", "gpt-oss-20b")}
MEASURED_CONTEXT = int(
    COSTS["llama-3.1-8b"].compiled_attention[0].calibrated.generation.over_total_context(2).curve.last / 2
)


def pool_of(cost, contexts):
    pool = DecodePool(16, cost.window_tokens)
    for tokens in contexts:
        pool.join(tokens)
    return pool


def decoded(cost, context, steps=20):
    """The shares of a run of a few decode steps alone, and the time outside, counted one by one."""
    pool, work, ranges = pool_of(cost, [context] * 2), WorkCounter(cost.window_tokens), RangeCounter(cost)
    durations = cost.decode_steps_ns(pool, steps)
    work.count_decodes(pool, steps)
    ranges.count_decodes(pool, durations)
    return price_shares(cost, [work], [ranges], sum(map(int, durations)) / 1e9), ranges


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    model=st.sampled_from(list(COSTS)),
    contexts=st.lists(st.sampled_from([1, 2, 5, 9, 15, 20, 500, MEASURED_CONTEXT - 7]), min_size=1, max_size=3),
    steps=st.integers(1, 40),
)
def test_steps_are_counted_the_same_together_and_alone(model, contexts, steps):
    cost = COSTS[model]
    pool = pool_of(cost, contexts)
    steps = min([steps, *(window.steps_to_crossing(0) for window in pool.windows)])
    durations = list(map(int, cost.decode_steps_ns(pool, steps)))
    together, alone = RangeCounter(cost), RangeCounter(cost)
    together.count_decodes(pool, durations)
    for duration in durations:
        alone.count_decodes(pool, [duration])
        pool.advance(1)
    assert (together.steps, together.time_ns) == (alone.steps, alone.time_ns)


def test_all_is_outside_by_roofline():
    shares, _ = decoded(cost_of("llama-3.1-8b", profiled=False), 1000)
    assert set(shares.by_source) == {"host", "roofline"}
    assert sum(shares.by_source.values()) == pytest.approx(1)
    assert shares.outside == pytest.approx(1)


@pytest.mark.parametrize(
    ("context", "outside"), [(1000, 0), (MEASURED_CONTEXT, 20), (MEASURED_CONTEXT - 5, 15), (4, 0)]
)
def test_attention_counts_as_outside_beyond_what_was_measured(context, outside):
    shares, ranges = decoded(COSTS["llama-3.1-8b"], context)
    assert sum(ranges.steps.values()) == outside
    assert sum(shares.by_source.values()) == pytest.approx(1)
    assert shares.by_source["calibrated"] > 0.6
    # The head, whose vocabulary is wider than any matrix measured, is always outside.
    assert 1 - shares.by_source["calibrated"] < shares.outside < (0.4 if outside == 0 else 0.99)


def test_a_chunk_beyond_what_was_measured_counts_its_step():
    cost = COSTS["llama-3.1-8b"]
    for computed_tokens, steps in ((0, 0), (100_000, 1)):
        ranges, plan = RangeCounter(cost), BatchPlan()
        plan.add_chunk(Request(0, 0, 120_000, computed_tokens=computed_tokens), 1024)
        ranges.count_step(plan, pool_of(cost, []), 0, 5)
        assert (sum(ranges.steps.values()), ranges.time_ns) == (steps, 5 * steps)


def test_linear_attention_counts_where_attention_was_not_measured():
    """Of 256 wide heads in vLLM 0.19 nothing was, of decodes with linear attention 1024 at most."""
    roofline = Roofline.of(load_accelerator("h200-sxm"), RooflineEfficiency(), "bf16")
    own, lender = load_profile("h200-sxm", "vllm-0.19.0"), load_profile("h200-sxm", "vllm-0.24.0")
    prices = KernelPrices(roofline, own, {"linear_attention": lender})
    cost = StepCost(load_model("qwen3-next-80b-a3b"), prices, HostOverhead(), "bf16", KvFormat(), 4)
    assert all(kind.calibrated.generation is None for kind in cost.compiled_attention)
    for decoding, outside in ((1024, 0), (1025, 3)):
        pool, ranges = pool_of(cost, [900] * decoding), RangeCounter(cost)
        durations = cost.decode_steps_ns(pool, 3)
        ranges.count_decodes(pool, durations)
        assert sum(ranges.steps.values()) == outside
        assert ranges.time_ns == (sum(map(int, durations)) if outside else 0)
    for tokens, outside in ((1000, 0), (40_000, 1)):
        ranges, plan = RangeCounter(cost), BatchPlan(decoding=2)
        plan.add_chunk(Request(0, 0, tokens), tokens)
        ranges.count_step(plan, pool_of(cost, [900] * 2), 3, 1000)
        assert (sum(ranges.steps.values()), ranges.time_ns) == (outside, 1000 * outside)
