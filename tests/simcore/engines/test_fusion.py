"""What an engine does within another kernel takes no time, and explain says so."""

from pathlib import Path

import pytest

from simcore.build.explanation import explain_step
from simcore.build.simulation import Simulation
from simcore.cost.breakdown import StepShape


def prepared(engine, model="llama-3.1-70b", weights="fp8", ranks=8, **pricing):
    document = {
        "pricing": {"profile": "auto"} | pricing,
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
    terms = [term for term in cost.token_terms if term.name == "activation_quantisation"]
    assert sum(term.launches for term in terms) == 80 * apart
    assert all((term.seconds(4) > 0) is (apart > 0) for term in terms)


def test_explain_tells_what_takes_no_time_of_its_own():
    explanation = explain_step(prepared("trtllm"), StepShape(4, 1000))
    assert "rotary_and_kv_write (in attention)" in explanation.fused
    assert "activation_quantisation (in activation and attention and norm)" in explanation.fusion
    assert {time.name: time.seconds for time in explanation.operators}["rotary_and_kv_write"] == 0
    assert explain_step(prepared("sglang"), StepShape(4, 1000)).fusion == ""


def test_shared_experts_run_beside_routed_ones_in_steps_of_few_tokens():
    explanation = explain_step(prepared("vllm-v1", "deepseek-v3", "fp8-block"), StepShape(4, 1000))
    assert "shared_expert_up (beside routed experts, up to 256 tokens)" in explanation.fused


def terms_of(simulation, name):
    return [term for term in simulation.cost.token_terms if term.name == name]


def test_what_quantises_is_another_where_a_scenario_says_so():
    (of_norms, others) = terms_of(prepared("vllm-v1", quantised_within=["attention"]), "activation_quantisation")
    assert of_norms.launches == 2 * 80
    assert others.launches == 80
    assert terms_of(prepared("vllm-v1"), "activation_quantisation")[0].launches == 80


def test_small_all_reduces_norm_their_sums_where_a_scenario_says_so():
    plain, summed = prepared("vllm-v1"), prepared("vllm-v1", all_reduce_norm_bytes=8 << 20)
    before, after = terms_of(plain, "norm")[0], terms_of(summed, "norm")[0]
    assert after.seconds(4) < before.seconds(4) / 2
    assert after.seconds(513) == before.seconds(513)
    assert "norm (beside all-reduces, up to 512 tokens)" in explain_step(summed, StepShape(4, 1000)).fused


def test_the_norms_of_one_rank_are_its_own():
    one = prepared("vllm-v1", ranks=1, all_reduce_norm_bytes=8 << 20)
    assert terms_of(one, "norm")[0].operator.beside_tokens == 0


def test_an_older_version_fuses_less():
    assert terms_of(prepared("trtllm@1.0"), "activation_quantisation")[0].launches == 2 * 80
    assert terms_of(prepared("trtllm@1.1"), "activation_quantisation")[0].launches == 0


def test_quantising_apart_gives_back_what_was_taken_off_small_products():
    """A measured module that quantises first is as fast as its product and the quantisation together."""
    prices = prepared("sglang").cost.prices
    (of_norms, _) = terms_of(prepared("sglang"), "activation_quantisation")
    product = terms_of(prepared("sglang"), "qkv_projection")[0].price.price
    measured_s = product.price.seconds(4)
    assert product.seconds(4) + of_norms.price.seconds(4) / of_norms.price.launches >= measured_s * 0.999
    assert prices.profile is not None
