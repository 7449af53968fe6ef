"""``run`` and ``explain`` tell the same of the same steps: their time, and where its prices are from."""

from collections import defaultdict
from pathlib import Path

import pytest

from simcore.build.explanation import explain_step
from simcore.build.simulation import Simulation
from simcore.cost.breakdown import StepShape
from simcore.cost.price_shares import attention_sources
from simcore.cost.split import moe_layers
from simcore.memory.capacity import MemoryDemand
from simcore.models import load_model, preset_names

PROMPT_TOKENS = 1500
SPLITS = {
    "one": {},
    "tensor": {"tensor_parallel": 4},
    "pipeline": {"tensor_parallel": 2, "pipeline_parallel": 2},
    "expert": {"tensor_parallel": 4, "expert_parallel": 4},
    "data": {"data_parallel": 4, "expert_parallel": 4},
    "context": {"context_parallel": 4, "tensor_parallel": 2},
}


def simulation(model, split, **changes):
    """A lone prompt, of which one step makes the first token and another, of one decode, the second."""
    document = {
        "model": model,
        "engine": "vllm-v1",
        "cluster": {"accelerator": "b200"} | split,
        "memory": {"num_gpu_blocks": 4096},
        "workload": {
            "requests": 1,
            "arrivals": {"name": "constant", "rate_per_s": 1},
            "prompt_tokens": {"name": "fixed", "tokens": PROMPT_TOKENS},
            "output_tokens": {"name": "fixed", "tokens": 2},
        },
    }
    return Simulation.prepare(document | changes, Path())


def told(explanations):
    """Seconds by source of some explained steps."""
    by_source = defaultdict(float)
    for explained in explanations:
        for operator in explained.operators:
            by_source[operator.source] += operator.seconds
    return by_source


def outside_s(explanations):
    return sum(one.seconds for step in explanations for one in step.operators if not one.inside)


def cases():
    """Every model that comes with the simulator, by every split that it allows."""
    for model in preset_names():
        spec = load_model(model)
        for split in SPLITS:
            if split in ("expert", "data") and not moe_layers(spec):
                continue
            if split == "context" and spec.has_linear_attention:
                continue
            ranks = SPLITS[split].get("tensor_parallel", 1)
            if all(group.attention is None or group.attention.query_heads % ranks == 0 for group in spec.layer_groups):
                yield model, split


def assert_agreement(prepared):
    prompt, decode = StepShape(chunks=((PROMPT_TOKENS, 0),)), StepShape(1, PROMPT_TOKENS)
    explained = [explain_step(prepared, shape) for shape in (prompt, decode)]
    result = prepared.run()
    steps_s = result.steps["end_s"] - result.steps["start_s"]
    assert steps_s.tolist() == pytest.approx([step.seconds for step in explained], abs=2e-8)
    by_source, busy_s = told(explained), sum(step.seconds for step in explained)
    expected = {source: seconds / busy_s for source, seconds in by_source.items() if seconds}
    assert result.summary["pricing"]["shares"] == pytest.approx(expected, abs=1e-6)
    found = result.summary["pricing"]["outside_calibrated_range"]
    assert found >= outside_s(explained) / busy_s - 1e-6


@pytest.mark.parametrize(("model", "split"), list(cases()))
def test_a_run_and_its_steps_explained_agree(monkeypatch, model, split):
    monkeypatch.setattr(MemoryDemand, "require_room_for", lambda *_: None)  # whatever fits, a step takes the same
    assert_agreement(simulation(model, SPLITS[split]))


def test_the_fullest_data_parallel_rank_is_priced_by_both():
    """One prompt of 8,192 tokens on eight data-parallel ranks is computed by one of them."""
    fixed = {"name": "fixed", "tokens": 8192}, {"name": "fixed", "tokens": 1}
    arrivals = {"name": "constant", "rate_per_s": 1}
    workload = {"requests": 1, "arrivals": arrivals, "prompt_tokens": fixed[0], "output_tokens": fixed[1]}
    prepared = simulation("deepseek-v3", {"data_parallel": 8, "expert_parallel": 8}, workload=workload)
    explained = explain_step(prepared, StepShape(chunks=((8192, 0),)))
    norms = next(operator for operator in explained.operators if operator.name == "norm")
    assert norms.bytes == 61 * 8192 * 2 * 8 * 7168
    share = told([explained])["roofline"] / explained.seconds
    assert prepared.run().summary["pricing"]["shares"]["roofline"] == pytest.approx(share, rel=1e-6)


def test_attention_of_several_sources_is_told_source_by_source():
    """Of Qwen3-Next this profile lacks attention of wide heads, and borrows linear attention."""
    split = {"accelerator": "h200-sxm", "tensor_parallel": 4}
    lone = simulation("qwen3-next-80b-a3b", split, pricing={"profile": "vllm-0.19.0"})
    assert len(attention_sources(lone.cost)) == 2
    assert_agreement(lone)
    workload = {
        "requests": 40,
        "arrivals": {"name": "poisson", "rate_per_s": 20},
        "prompt_tokens": {"name": "uniform", "low": 10, "high": 3000},
        "output_tokens": {"name": "uniform", "low": 1, "high": 60},
    }
    many = simulation("qwen3-next-80b-a3b", split, workload=workload, pricing={"profile": "vllm-0.19.0"})
    jumping, stepping = (many.run(fast_forward=fast).summary["pricing"]["shares"] for fast in (True, False))
    assert jumping == pytest.approx(stepping, abs=1e-8)
