"""Policies that steer by the scenario's objectives unless told otherwise."""

import pytest

from simcore.scenario import parse_scenario

DOCUMENT = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "l4"},
    "workload": {
        "requests": 1,
        "arrivals": {"name": "constant", "rate_per_s": 1},
        "prompt_tokens": {"name": "fixed", "tokens": 1},
        "output_tokens": {"name": "fixed", "tokens": 1},
    },
}
SLO = {"ttft_s": {"p50": 0.4, "p99": 3.0}, "tpot_s": {"p99": 0.02}}


@pytest.mark.parametrize(("slo", "stated", "ttft_s"), [({}, {}, 1.0), (SLO, {}, 0.4), (SLO, {"ttft_s": 7.0}, 7.0)])
def test_deadlines_are_the_tightest_objective(slo, stated, ttft_s):
    scheduler = {"ordering": {"name": "edf", **stated}}
    assert parse_scenario(DOCUMENT | {"slo": slo, "scheduler": scheduler}).scheduler.ordering["ttft_s"] == ttft_s


def test_feedback_steers_by_both_limits():
    scheduler = {"batching": {"name": "slo-feedback", "tpot_p99_s": 0.5}}
    batching = parse_scenario(DOCUMENT | {"slo": SLO, "scheduler": scheduler}).scheduler.batching
    assert (batching["ttft_p99_s"], batching["tpot_p99_s"]) == (0.4, 0.5)
