"""A plan from end to end, on a load that takes little to simulate."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from experiments.planner.answers import answers_of
from experiments.planner.document import document_of
from experiments.planner.planning import make_plan
from experiments.planner.question import ask
from experiments.planner.sensitivity import break_even, sensitivity
from experiments.runners import ThisProcess, runner_of
from simcore.build.simulation import Simulation
from simcore.core.errors import InputError, UnknownNameError

DOCUMENT = {
    "model": "llama-3.1-8b",
    "workload": {
        "requests": 100,
        "arrivals": {"name": "poisson", "rate_per_s": 60.0},
        "prompt_tokens": {"name": "fixed", "tokens": 400},
        "output_tokens": {"name": "fixed", "tokens": 20},
    },
    "slo": {"ttft_s": {"p90": 0.3}, "tpot_s": {"p90": 0.04}},
}


def question(**changes):
    given = {"accelerators": ["l40s", "h100-sxm"], "vary": {"cluster.tensor_parallel": [1]}, "most_requests": 1_000}
    return ask(DOCUMENT, Path(), **(given | changes))


@pytest.fixture(scope="module")
def plan():
    return make_plan(question(), ThisProcess())


def test_each_accelerator_has_an_answer_and_one_replica_less_fails(plan):
    answers = answers_of(plan)
    assert {answer.set_up.accelerator for answer in answers.answers} == {"l40s", "h100-sxm"}
    prices = [answer.usd_per_h for answer in answers.answers]
    assert prices == sorted(prices)
    for answer in answers.answers:
        assert all(held.share >= held.needed for held in answer.outcome.limits)
        assert (answer.fails is None) == (answer.replicas == 1)


def test_the_scenario_of_an_answer_runs_and_holds_the_limits(plan):
    for answer in answers_of(plan).answers:
        summary = Simulation.prepare(answer.outcome.document, Path()).run().summary
        assert all(objective["met"] for objective in summary["slo"].values())


def test_processes_make_the_same_plan():
    asked = question(accelerators=["h100-sxm"], vary={"cluster.tensor_parallel": [1, 2]})
    alone = make_plan(asked, ThisProcess())
    with closing(runner_of(2)) as runner:
        together = make_plan(asked, runner)
    assert json.dumps(document_of(answers_of(together))) == json.dumps(document_of(answers_of(alone)))


def test_a_higher_rate_or_dearer_kernels_need_no_fewer_replicas():
    answers = answers_of(make_plan(question(accelerators=["l40s"]), ThisProcess()))
    effects = {effect.change: effect for effect in sensitivity(answers, ThisProcess(), 1_000)}
    assert {"rate +25%", "rate -20%", "prompt lengths +25%", "output lengths -20%", "kernels dearer"} <= set(effects)
    needed = {name: effect.cheapest.replicas for name, effect in effects.items()}
    assert needed["rate -20%"] <= answers.answers[0].replicas <= needed["rate +25%"]
    assert needed["kernels cheaper"] <= answers.answers[0].replicas <= needed["kernels dearer"]
    assert not any(effect.changes_answer for effect in effects.values())


def test_the_price_at_which_the_answer_changes(plan):
    answers = answers_of(plan)
    first, second = answers.answers
    even = {each.accelerator: each for each in break_even(answers)}
    assert even[second.set_up.accelerator].usd_per_h * second.gpus == pytest.approx(first.usd_per_h)
    assert even[first.set_up.accelerator].usd_per_h >= even[first.set_up.accelerator].now_usd_per_h


def test_a_launch_line_states_the_split_and_the_limits_of_a_step(plan):
    lines = [answer.launch for answer in answers_of(plan).answers]
    assert all(line.startswith("vllm serve meta-llama/Llama-3.1-8B ") for line in lines)
    assert all(" --max-num-seqs 256" in line for line in lines)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"models": ["llama-3.1-405b"]}, "does not fit"),
        ({"slo": {"tpot_s": {"p99": 0.001}}}, "with a replica to itself"),
        ({"budget_usd_per_h": 0.5, "accelerators": ["l40s"]}, "USD/h or more"),
    ],
)
def test_where_there_is_no_answer_the_reason_is_told_without_simulating(changes, why):
    answers = answers_of(make_plan(question(**({"accelerators": ["l4"]} | changes)), ThisProcess()))
    assert answers.answers == ()
    assert why in answers.none[0].why
    assert answers.plan.simulations == 0


def test_a_setting_that_there_is_not_is_refused():
    with pytest.raises(InputError, match="max_batched_tokens"):
        make_plan(question(vary={"scheduler.batching.max_batched_token": [512]}), ThisProcess())


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"accelerators": ["h100-smx"]}, "h100-sxm"),
        ({"engines": ["vlm"]}, "vllm-v1"),
        ({"models": ["llama-3.1-9b"]}, "llama-3.1-8b"),
        ({"budget_usd_per_h": -1.0}, "--budget"),
        ({"prices": {"a100": 2.0}}, "--price"),
        ({"rate_per_s": 0.0}, "--rate"),
        ({"vary": {"workload.requests": [1, 2]}}, "--vary"),
        ({"slo": {}}, "slo"),
        ({"most_requests": 3}, "--most-requests"),
    ],
)
def test_what_is_wrong_with_a_question_is_told(changes, error):
    with pytest.raises((InputError, UnknownNameError), match=error):
        question(**changes)


def test_prefill_and_decode_apart_are_set_ups_too():
    asked = question(accelerators=["h100-sxm"], rate_per_s=20.0, apart=[(1, 1)])
    plan = make_plan(asked, ThisProcess())
    together, apart = (
        each for each in plan.set_ups if each.choices.get("scheduler.batching.max_batched_tokens") is None
    )
    assert (together.devices, apart.devices) == (1, 2)
    assert apart.usd_per_h == 2 * together.usd_per_h
    pools = apart.with_replicas(3)["cluster"]["pools"]
    assert [(pool["role"], pool["replicas"]) for pool in pools] == [("prefill", 3), ("decode", 3)]
    summary = Simulation.prepare(apart.with_replicas(1), Path()).run().summary
    assert summary["cost"]["usd_per_h"] == pytest.approx(apart.usd_per_h)
    assert answers_of(plan).answers[0].set_up.apart is None
