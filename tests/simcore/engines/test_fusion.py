"""What an engine does within another kernel takes no time, and explain says so."""

from pathlib import Path

import pytest

from simcore.build.explanation import explain_step
from simcore.build.simulation import Simulation
from simcore.cost.breakdown import StepShape


def prepared(engine, model="llama-3.1-70b", weights="fp8", ranks=8):
    document = {
        "model": model,
        "engine": engine,
        "cluster": {"accelerator": "h200-sxm", "tensor_parallel": ranks},
        "precision": {"weights": weights},
        "workload": {
            "requests": 1,
            "arrivals": {"name": "at-once"},
            "prompt_tokens": {"name": "fixed", "tokens": 1000},
            "output_tokens": {"name": "fixed", "tokens": 10},
        },
    }
    return Simulation.prepare(document, Path())


@pytest.mark.parametrize(("engine", "apart"), [("trtllm", 0), ("vllm-v1", 1), ("sglang", 4)])
def test_engines_quantise_within_what_makes_the_input_or_apart(engine, apart):
    cost = prepared(engine).cost
    (term,) = (term for term in cost.token_terms if term.name == "activation_quantisation")
    assert term.launches == 80 * apart
    assert (term.seconds(4) > 0) is (apart > 0)


def test_explain_tells_what_takes_no_time_of_its_own():
    explanation = explain_step(prepared("trtllm"), StepShape(4, 1000))
    assert "rotary_and_kv_write (in attention)" in explanation.fused
    assert "activation_quantisation (in activation and attention and norm)" in explanation.fusion
    assert {time.name: time.seconds for time in explanation.operators}["rotary_and_kv_write"] == 0
    assert explain_step(prepared("sglang"), StepShape(4, 1000)).fusion == ""


def test_shared_experts_run_beside_routed_ones_in_steps_of_few_tokens():
    explanation = explain_step(prepared("vllm-v1", "deepseek-v3", "fp8-block"), StepShape(4, 1000))
    assert "shared_expert_up (beside routed experts, up to 256 tokens)" in explanation.fused
