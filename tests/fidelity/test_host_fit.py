"""Host constants are recovered from runs that they made, and left-out groups are predicted without their own rows."""

import numpy as np
import pytest

from fidelity.case import Case, Outcome
from fidelity.execution import simulate_case
from fidelity.host_fit import TPOT, TTFT, constants_of, fit, fittable, left_out, predicted
from fidelity.left_out_tables import left_out_tables
from simcore.cost.assumptions import HOST_RANGES

HOST = {"step_s": 1e-3, "request_s": 5e-3, "launch_s": 2e-5, "per_request_s": 1e-5, "per_prompt_token_s": 5e-6}
TRUE = {"step_s": 1.5e-3, "request_s": 9e-3, "launch_s": 3e-5}


def case(model, clients, host, measured=None):
    document = {
        "model": model,
        "engine": "trtllm",
        "cluster": {"accelerator": "h200-sxm"},
        "host": HOST | host,
        "workload": {
            "requests": 6 * clients,
            "arrivals": {"name": "closed-loop", "concurrency": clients},
            "prompt_tokens": {"name": "fixed", "tokens": 600},
            "output_tokens": {"name": "fixed", "tokens": 40},
        },
    }
    labels = {
        "engine": "trtllm",
        "model": model,
        "accelerator": "h200-sxm",
        "concurrency": str(clients),
        "kind": "dense",
    }
    return Case(f"{model} {clients}", labels, document, measured or {TTFT: 1.0, TPOT: 1.0})


@pytest.fixture(scope="module")
def outcomes():
    """Runs at HOST, held against the same at TRUE."""
    found = []
    for model in ("llama-3.1-8b", "qwen3-8b"):
        for clients in (1, 4):
            truth = simulate_case(case(model, clients, TRUE))
            found.append(simulate_case(case(model, clients, {}, dict(truth.simulated))))
    return found


def test_a_changed_constant_changes_a_run_as_its_shares_say(outcomes):
    for one in outcomes:
        change = one.host.change(TRUE)
        assert one.simulated[TTFT] + change[0] == pytest.approx(one.case.measured[TTFT], rel=0.1)
        assert one.simulated[TPOT] + change[1] == pytest.approx(one.case.measured[TPOT], rel=0.02)
        assert np.all(one.host.change({}) == 0)


def test_constants_are_found_again_within_their_ranges(outcomes):
    known = fittable(outcomes)
    constants = constants_of(known, ("step_s", "request_s"))
    assert constants == [("request_s", 5e-3), ("step_s", 1e-3)]
    fitted = fit(known, constants)
    assert fitted.values["step_s", 1e-3] == pytest.approx(TRUE["step_s"], rel=0.1)
    for (name, _), value in fitted.values.items():
        assert HOST_RANGES[name][0] <= value <= HOST_RANGES[name][1]
    assert abs(predicted(known[0], fitted).error(TPOT)) < 0.01 < abs(known[0].error(TPOT))


def test_a_group_is_predicted_by_the_others(outcomes):
    apart = left_out(outcomes)
    assert len(apart) == len(outcomes)
    assert np.mean([abs(apart[id(one)].error(TPOT)) for one in outcomes]) < 0.03
    titles = [table.title for table in left_out_tables(outcomes)]
    assert titles[0].endswith("left out")
    assert left_out_tables(outcomes[:2]) == []  # of one group nothing is left


def test_runs_without_shares_are_left_alone():
    bare = Outcome(case("llama-3.1-8b", 1, {}), {TTFT: 1.0, TPOT: 1.0}, {})
    assert fittable([bare]) == []
    assert left_out([bare]) == {}
