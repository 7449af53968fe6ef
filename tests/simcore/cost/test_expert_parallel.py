from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.build.simulation import Simulation
from simcore.core.decode_pool import DecodePool
from simcore.core.errors import InputError
from simcore.cost.assumptions import HostOverhead
from simcore.cost.breakdown import StepShape
from simcore.cost.model_operators import layer_operators
from simcore.cost.split import Split, busiest_load, deal
from simcore.cost.step_cost import StepCost
from simcore.cost.term import Counted
from simcore.memory.kv_bytes import KvFormat
from simcore.models import load_model
from simcore.models.weights import rank_weight_bytes
from tests.simcore.cost.step_parts import terms_by_name

WORKLOAD = {
    "requests": 4,
    "arrivals": {"name": "constant", "rate_per_s": 1},
    "prompt_tokens": {"name": "fixed", "tokens": 100},
    "output_tokens": {"name": "fixed", "tokens": 10},
}


def simulation(cluster, model="deepseek-v3", **changes):
    cluster = {"accelerator": "h200-sxm"} | cluster
    document = {"model": model, "engine": "sglang", "cluster": cluster, "pricing": {"profile": "auto"}}
    return Simulation.prepare(document | {"workload": WORKLOAD} | changes, Path())


def experts_of(model, split):
    return next(op for op in layer_operators(load_model(model), "bf16", split.tensor, split) if op.name == "experts")


def test_each_rank_does_its_part_of_the_experts():
    """Of 8 experts of mixtral (4096 x 14336, two of them per token) on 4 ranks each has two."""
    alone, parted = (experts_of("mixtral-8x7b", split) for split in (Split(), Split(tensor=4, expert=4)))
    assert alone.flops(100) == 100 * 2 * 2 * 3 * 4096 * 14336
    assert parted.flops(100) == pytest.approx(alone.flops(100) / 4)
    assert parted.bytes(100) == pytest.approx(alone.bytes(100) / 4)
    assert parted.shape.expert_ranks == 4
    assert parted.shape.ranks == 1


@pytest.mark.parametrize("model", ["mixtral-8x7b", "deepseek-v2-lite", "gpt-oss-20b"])
def test_without_expert_parallelism_nothing_changes_to_the_bit(model):
    spec = load_model(model)
    for ranks in (1, 2, 4):
        plain, split = (list(layer_operators(spec, "bf16", ranks, given)) for given in (None, Split(tensor=ranks)))
        assert plain == split
        assert rank_weight_bytes(spec, "bf16", ranks) == rank_weight_bytes(spec, "bf16", ranks, None, 1, 1)


def test_the_busiest_rank_by_hand():
    assert busiest_load((1, 1, 1, 1), 2) == 1
    assert busiest_load((3, 1, 0, 0), 2) == 2
    assert busiest_load((3, 1, 0, 0), 4) == 3
    assert busiest_load((3, 1, 0, 0), 1) == 1


@given(weights=st.lists(st.floats(0.01, 100), min_size=16, max_size=16), parts=st.sampled_from([1, 2, 4, 8, 16]))
def test_no_rank_is_busier_than_all_together(weights, parts):
    load = busiest_load(tuple(weights), parts)
    assert 1 - 1e-9 <= load <= parts


def test_skewed_weights_make_the_fullest_rank_slower():
    weights = [4.0] * 32 + [1.0] * 224
    cluster = {"tensor_parallel": 8, "expert_parallel": 8}
    even = simulation(cluster, pricing={"profile": "auto", "routing": "balanced"}).cost
    skewed = simulation(cluster, pricing={"profile": "auto", "routing": weights}).cost
    load = 8 * 32 * 4 / (32 * 4 + 224)
    assert skewed.split.load == pytest.approx(load)
    evenly, skewedly = (terms_by_name(cost)["experts"] for cost in (even, skewed))
    assert skewedly.seconds(4096) == pytest.approx(evenly.seconds(round(4096 * load)), rel=1e-3)


def test_tokens_go_to_their_experts_and_back():
    """64 decodes over 8 data-parallel ranks: each sends 8 tokens of 7168 numbers to 8 (1 - (7/8)^8), in 58 layers."""
    cost = simulation({"data_parallel": 8, "expert_parallel": 8}).cost
    dispatch = terms_by_name(cost)["expert_dispatch"]
    assert dispatch.count == 58
    reached = 8 * (1 - (7 / 8) ** 8)
    assert dispatch.price.sent_bytes(8) == pytest.approx(8 * reached * 7168 * 2, abs=1)
    times = {time.name: time for time in cost.terms(StepShape(64, 1000))}
    sent_s = 58 * cost.prices.collective("all_to_all", 8).seconds(dispatch.price.sent_bytes(8))
    assert times["expert_dispatch"].seconds == times["expert_combine"].seconds == pytest.approx(sent_s)
    assert "all_reduce" not in times
    summed = {
        time.name for time in simulation({"tensor_parallel": 8, "expert_parallel": 8}).cost.terms(StepShape(64, 1000))
    }
    assert "all_reduce" in summed
    assert "expert_dispatch" not in summed


def test_a_data_parallel_rank_computes_its_own_requests_and_experts_all_tokens():
    prices = simulation({}, model="deepseek-v2-lite").cost.prices
    facts = load_model("deepseek-v2-lite"), prices, HostOverhead(), "bf16", KvFormat(), 1
    alone, divided = StepCost(*facts), StepCost(*facts, None, Split(data=4, expert=4))
    ours, theirs = (DecodePool(16), DecodePool(16))
    for tokens in (1000, 1000, 1000, 1000):
        ours.join(tokens)
    theirs.join(1000)
    assert divided.compiled_attention[0].decodes_ns(4, 4004, False) == pytest.approx(
        alone.compiled_attention[0].decodes_ns(1, 1001, False)
    )
    counts = divided.split.counts_of_decodes(4)
    for term in divided.token_terms:
        if term.tokens is not Counted.DECODING:
            assert counts[term.tokens] == (4 if term.name == "experts" else 1), term.name


def test_the_terms_add_up_to_the_step():
    run = simulation({"data_parallel": 4, "tensor_parallel": 2, "expert_parallel": 8})
    pool = DecodePool(16)
    for _ in range(12):
        pool.join(500)
    step_ns = int(run.cost.decode_steps_ns(pool, 1)[0])
    assert sum(time.seconds for time in run.cost.terms(StepShape(12, 500))) == pytest.approx(step_ns / 1e9, rel=1e-6)


def test_a_lone_prompt_is_computed_by_one_data_parallel_rank():
    assert deal([(5, 0), (9, 0), (4, 0)], 2) == [[(9, 0)], [(5, 0), (4, 0)]]
    split = simulation({"data_parallel": 8, "expert_parallel": 8}).cost.split
    assert split.fullest_tokens([(2000, 0)], 0) == 2000
    assert split.fullest_tokens([(1000, 0), (1000, 0)], 16) == 1002


def test_jumping_over_steps_equals_taking_them():
    busy = WORKLOAD | {"requests": 60, "arrivals": {"name": "poisson", "rate_per_s": 30}}
    run = simulation({"data_parallel": 4, "tensor_parallel": 2, "expert_parallel": 8}, workload=busy)
    jumping, stepping = run.run(check=True), run.run(fast_forward=False, check=True)
    assert (jumping.requests["end_s"] == stepping.requests["end_s"]).all()
    assert run.memory.request_blocks % 4 == 0


@settings(deadline=None, max_examples=30)
@given(expert=st.sampled_from([1, 2, 4, 8]), data=st.sampled_from([1, 2, 4]))
def test_more_ranks_never_hold_more_each(expert, data):
    spec = load_model("deepseek-v2-lite")
    fewer, more = (rank_weight_bytes(spec, "bf16", ranks, None, data, min(expert, ranks * data)) for ranks in (4, 8))
    assert more <= fewer


@pytest.mark.parametrize(
    ("cluster", "model", "said"),
    [
        (
            {"expert_parallel": 2},
            "llama-3.1-8b",
            r"expert_parallel is 2, expected 1, since llama",
        ),
        ({"data_parallel": 2}, "llama-3.1-8b", r"data_parallel is 2.*cluster\.replicas"),
        ({"tensor_parallel": 8, "expert_parallel": 3}, "deepseek-v3", r"a divisor of the 256 experts"),
        ({"tensor_parallel": 8, "expert_parallel": 16}, "deepseek-v3", r"a divisor of cluster\.tensor_parallel, 8"),
        ({"data_parallel": 8, "expert_parallel": 4}, "deepseek-v3", r"expert_parallel is 4, expected 8"),
        ({"data_parallel": 0}, "deepseek-v3", r"cluster\.data_parallel is 0"),
    ],
)
def test_splits_that_cannot_be_are_refused(cluster, model, said):
    with pytest.raises(InputError, match=said):
        simulation(cluster, model)


@pytest.mark.parametrize(
    ("routing", "said"), [([1.0, 2.0], "2 weights"), ([0.0] * 256, "all 0"), ("skewed", "pricing.routing")]
)
def test_weights_that_cannot_be_are_refused(routing, said):
    with pytest.raises(InputError, match=said):
        simulation({"tensor_parallel": 8, "expert_parallel": 8}, pricing={"profile": "auto", "routing": routing})
