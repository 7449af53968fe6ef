from pathlib import Path

import pytest

from simcore.build.explanation import explain_step
from simcore.build.simulation import Simulation
from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.cost.breakdown import StepShape

DENSE = {"tensor_parallel": 2, "pipeline_parallel": 2}
EXPERTS = {"data_parallel": 2, "expert_parallel": 2, "pipeline_parallel": 2}


def simulation(model, split, **sections):
    fixed = {"name": "fixed", "tokens": 100}
    requests = {"arrivals": {"name": "poisson", "rate_per_s": 1}, "prompt_tokens": fixed, "output_tokens": fixed}
    cluster = {"accelerator": "h100-sxm", **split}
    document = {"model": model, "cluster": cluster, "workload": {"requests": 1, **requests}}
    return Simulation.prepare(document | sections, Path())


@pytest.mark.parametrize(("model", "split"), [("llama-3.1-8b", DENSE), ("qwen3-30b-a3b", EXPERTS)])
@pytest.mark.parametrize("text", ["64x2048", "5x300", "512", "900+300+300", "64x2048+512"])
def test_stages_take_what_the_simulator_lets_them_compute_and_send(model, split, text):
    shape, found = StepShape.parse(text), simulation(model, split)
    pool, plan = DecodePool(16, found.cost.window_tokens), BatchPlan(decoding=shape.decodes)
    for _ in range(shape.decodes):
        pool.join(shape.context_tokens)
    for tokens, computed in shape.chunks:
        plan.add_chunk(Request(0, 0, tokens + computed, computed_tokens=computed), tokens)
    computing_ns = found.pipeline.computing_ns(plan, pool, shape.requests)
    sending_ns = found.pipeline.sending_ns(found.pipeline.sent_tokens(shape.chunks, shape.decodes))
    explained = explain_step(found, shape)
    together = [computes + sends for computes, sends in zip(computing_ns, sending_ns, strict=True)]
    assert [stage_s * 1e9 for stage_s in explained.stage_s] == pytest.approx(together, abs=2)
    assert explained.seconds == pytest.approx(sum(explained.stage_s))


def test_the_data_parallel_rank_with_most_tokens_sets_the_pace_of_sends():
    """Of 900, 300 and 300 tokens one of two ranks has the first prompt; decodes are dealt out evenly."""
    pipeline = simulation("qwen3-30b-a3b", EXPERTS).pipeline
    assert pipeline.sent_tokens([(900, 0), (300, 0), (300, 0)], 0) == 900
    assert pipeline.sent_tokens([], 5) == 3
    assert simulation("llama-3.1-8b", DENSE).pipeline.sent_tokens([(900, 0), (300, 7)], 5) == 1205


def test_layers_of_two_kinds_are_told_as_one_and_launching_apart_from_the_host():
    """GPT-OSS has 12 layers with a window and 12 without, whose experts are the same."""
    found = simulation("gpt-oss-20b", {})
    graph, eager = (explain_step(found, StepShape.parse(text)) for text in ("8x100", "8x100+505"))
    for explained in (graph, eager):
        names = [operator.name for operator in explained.operators]
        assert len(set(names)) == len(names)
        operators = {operator.name: operator for operator in explained.operators}
        assert operators["experts"].count == 24
        host = found.scenario.host
        assert operators["host"].seconds == pytest.approx(host.step_s + explained.shape.requests * host.per_request_s)
    assert "launching" not in {operator.name for operator in graph.operators}
    launching = next(operator for operator in eager.operators if operator.name == "launching")
    assert launching.count == found.cost.host.launches
    assert launching.source == "host"


def test_waiting_for_linear_attention_is_told_apart_from_the_host():
    split = {"accelerator": "h200-sxm", "tensor_parallel": 8}
    found = simulation("qwen3.5-397b-a17b", split, engine="sglang", precision={"weights": "fp8-block"})
    decodes, prompt = (explain_step(found, StepShape.parse(text)) for text in ("8x100", "505"))
    assert "waiting" not in {operator.name for operator in decodes.operators}
    operators = {operator.name: operator for operator in prompt.operators}
    assert operators["waiting"].count == 45
    assert operators["waiting"].seconds == pytest.approx(45 * found.scenario.host.linear_prompt_s)
    assert operators["host"].seconds == pytest.approx(found.scenario.host.per_request_s)
