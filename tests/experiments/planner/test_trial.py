"""A trial is as long as it takes, and no longer."""

from pathlib import Path

import pytest

from experiments.planner.hopeless import HopelessRunError, run_unless_hopeless
from experiments.planner.stages import Stage
from experiments.planner.trial import Trial, attempt
from simcore.build.simulation import Simulation

DOCUMENT = {
    "model": "qwen2.5-0.5b",
    "cluster": {"accelerator": "l4"},
    "workload": {
        "requests": 10,
        "arrivals": {"name": "poisson", "rate_per_s": 20.0},
        "prompt_tokens": {"name": "lognormal", "median": 300, "sigma": 0.5},
        "output_tokens": {"name": "fixed", "tokens": 10},
    },
    "slo": {"ttft_s": {"p90": 1.0}},
}
STAGES = (Stage(20.0, 1.0, 2.576, None), Stage(100.0, 1.0, 1.96, 1.645), Stage(200.0, 1.0, 0.0, 1.645))


def at_rate(rate: float) -> dict:
    workload = {**DOCUMENT["workload"], "arrivals": {"name": "poisson", "rate_per_s": rate}}
    return {**DOCUMENT, "workload": workload}


def test_an_overload_is_settled_by_the_first_stage():
    outcome = attempt(Trial(at_rate(300.0), STAGES[:1] + STAGES[1:2]))
    assert (outcome.holds, outcome.sure, outcome.simulations) == (False, True, 1)
    assert outcome.tightest.ratio > 1


def test_a_light_load_holds_no_sooner_than_the_second_stage():
    outcome = attempt(Trial(at_rate(10.0), STAGES))
    assert (outcome.holds, outcome.sure, outcome.simulations) == (True, True, 2)
    assert outcome.document["workload"]["duration_s"] == 100.0
    assert outcome.limits[0].low > 0.9


def test_the_requests_of_a_shorter_stage_are_the_first_of_a_longer_one():
    tables = [attempt(Trial(at_rate(10.0), (stage,))).document for stage in (STAGES[1], STAGES[2])]
    short, long = (Simulation.prepare(document, Path()).run().requests for document in tables)
    assert list(long["prompt_tokens"][: len(short["prompt_tokens"])]) == list(short["prompt_tokens"])
    assert list(long["arrival_s"][: len(short["arrival_s"])]) == list(short["arrival_s"])


def test_a_hopeless_run_is_given_up_before_its_end():
    document = at_rate(400.0)
    document["workload"]["requests"] = 8_000
    with pytest.raises(HopelessRunError) as caught:
        run_unless_hopeless(Simulation.prepare(document, Path()), 1.96)
    assert caught.value.arrived < 8_000


def test_a_run_that_holds_its_limits_is_not_given_up():
    simulation = Simulation.prepare(at_rate(10.0), Path())
    result, whole = run_unless_hopeless(simulation, 1.96), simulation.run()
    assert result.summary["metrics"] == whole.summary["metrics"]
