import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.cost.assumptions import HostOverhead, RooflineEfficiency
from simcore.cost.calibrated import Source, load_profile
from simcore.cost.fabric import Fabric
from simcore.cost.kernel_prices import KernelPrices
from simcore.cost.pipeline import PipelineCost
from simcore.cost.roofline import Roofline
from simcore.cost.split import Split
from simcore.cost.step_cost import StepCost
from simcore.hardware import load_accelerator
from simcore.memory.kv_bytes import KvFormat
from simcore.memory.kv_groups import pipeline_stages
from simcore.models import load_model
from simcore.models.weights import rank_weight_bytes, weight_bytes
from tests.simcore.cost.step_parts import whole

HOST = HostOverhead(step_s=1e-3, per_request_s=1e-5)


def prices(fitted=True):
    device = load_accelerator("h100-sxm")
    roofline = Roofline.of(device, RooflineEfficiency(), "bf16")
    return KernelPrices(roofline, load_profile("h100-sxm", "vllm-0.19.0"), fitted_collectives=fitted)


def costs(model, ranks, stages):
    facts = load_model(model), prices(), HOST, "bf16", KvFormat()
    return StepCost(*facts, ranks), PipelineCost(*facts, Split(ranks), stages)


def pool_of(cost, contexts):
    pool = DecodePool(16, cost.window_tokens)
    for tokens in contexts:
        pool.join(tokens)
    return pool


@pytest.mark.parametrize(
    ("model", "ranks", "stages"), [("llama-3.1-70b", 4, 2), ("gemma-3-27b", 1, 3), ("gpt-oss-20b", 1, 4)]
)
def test_stages_take_together_what_the_model_takes(model, ranks, stages):
    whole, pipeline = costs(model, ranks, stages)
    contexts = [500, 900, 2000, 40]
    decodes = BatchPlan(decoding=len(contexts))
    pool = pool_of(whole, contexts)
    together = sum(pipeline.computing_ns(decodes, pool, 4))
    assert together == pytest.approx(int(whole.decode_steps_ns(pool, 1)[0]), abs=stages)
    chunk = BatchPlan()
    chunk.add_chunk(Request(0, 0, 3000), 3000)
    empty = pool_of(whole, [])
    assert sum(pipeline.computing_ns(chunk, empty, 1)) == pytest.approx(whole.step_ns(chunk, empty, 1), abs=stages)


def test_the_embedding_and_the_host_are_on_the_first_stage_and_the_head_on_the_last():
    _, pipeline = costs("llama-3.1-70b", 4, 2)
    first, last = pipeline.stages
    ours, theirs = ({term.name for term in stage.token_terms} for stage in (first, last))
    assert ours - theirs == {"embedding", "embedding_all_reduce"}
    assert theirs - ours == {"final_norm", "head", "sampling", "logits_gather"}
    assert first.host_ns(whole(8, 8, 8)) == pytest.approx(1e6 + 8 * 1e4)
    assert last.host_ns(whole(8, 8, 8)) == 0


def test_one_stage_is_the_model_to_the_bit():
    whole, pipeline = costs("llama-3.1-8b", 2, 1)
    pool = pool_of(whole, [10, 2000, 31])
    plan = BatchPlan(decoding=3)
    assert pipeline.computing_ns(plan, pool, 3) == [int(whole.decode_steps_ns(pool, 1)[0])]
    assert pipeline.sending_ns(3) == [0]


def test_a_rank_sends_its_share_of_two_tensors_which_are_then_gathered():
    """100 tokens of 8192 numbers in 16 bits, over 4 ranks."""
    _, pipeline = costs("llama-3.1-70b", 4, 2)
    ((send, _),) = pipeline.hops
    tensor = 100 * 8192 * 2
    sent_s = 2 * prices().collective("send_recv", 2, "nvlink").seconds(tensor // 4)
    gathered_s = 2 * prices().collective("all_gather", 4).seconds(tensor)
    assert pipeline.sending_ns(100) == [round((sent_s + gathered_s) * 1e9), 0]
    assert send.price.source == Source.ALPHA_BETA


def test_stages_on_other_nodes_send_over_the_network():
    _, near = costs("llama-3.1-70b", 4, 2)
    _, far = costs("llama-3.1-70b", 8, 2)
    tokens = 8192
    assert far.hops[0][0].seconds(2 * tokens) > 3 * near.hops[0][0].seconds(tokens)  # twice as many ranks share one
    fabric = Fabric.of(load_accelerator("h100-sxm"))
    assert [fabric.between(place, place + 4) for place in (0, 4, 8)] == ["nvlink", "network", "nvlink"]
    assert Fabric.of(load_accelerator("l40s")).between(0, 1) == "pcie"


@settings(max_examples=40, deadline=None)
@given(
    model=st.sampled_from(["llama-3.1-8b", "gemma-3-27b", "deepseek-v2-lite", "gpt-oss-20b"]),
    ranks=st.sampled_from([1, 2, 4]),
    stages=st.integers(1, 8),
)
def test_more_devices_never_hold_more_each(model, ranks, stages):
    spec = load_model(model)
    most = [
        max(rank_weight_bytes(spec, "bf16", count, layers) for layers in pipeline_stages(spec.layers, parts))
        for count, parts in ((ranks, stages), (2 * ranks, stages), (ranks, 2 * stages))
    ]
    assert max(most[1:]) <= most[0] <= weight_bytes(spec, "bf16")
