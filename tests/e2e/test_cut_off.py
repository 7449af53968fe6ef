"""A run that is cut off counts what came before its end: tokens of unfinished requests, and first tokens."""

import numpy as np
import pytest

import servetwin

FIXED = {"name": "fixed", "tokens": 4000}
BATCH = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm"},
    "workload": {
        "requests": 256,
        "arrivals": {"name": "constant", "rate_per_s": 100_000},
        "prompt_tokens": {"name": "fixed", "tokens": 100},
        "output_tokens": FIXED,
    },
    "measurement": {"end_s": 40},
}
CLOSED_LOOP = {
    "model": "llama-3.1-70b",
    "cluster": {"accelerator": "h100-sxm", "tensor_parallel": 4},
    "workload": {
        "requests": 3000,
        "arrivals": {"name": "closed-loop", "concurrency": 64},
        "prompt_tokens": {"name": "fixed", "tokens": 500},
        "output_tokens": {"name": "lognormal", "median": 1500, "sigma": 0.9, "max": 16000},
    },
    "measurement": {"end_s": 120},
}
OVERLOAD = BATCH | {
    "workload": BATCH["workload"] | {"requests": 3000, "arrivals": {"name": "poisson", "rate_per_s": 60}},
    "scheduler": {"batching": {"max_running_requests": 8}},
    "measurement": {},
}
OVERLOAD["workload"]["output_tokens"] = {"name": "fixed", "tokens": 100}


@pytest.mark.parametrize("document", [BATCH, CLOSED_LOOP])
def test_tokens_of_requests_that_never_finish_count(document):
    """Each prompt gives one token, and each decode of a step one more."""
    result = servetwin.simulate(document)
    rates, requests, steps = result.summary["throughput"], result.requests, result.steps
    prefilled = (~np.isnan(requests["first_token_s"])).sum()
    emitted = prefilled + (steps["decoding_requests"] * steps["steps"]).sum()
    assert emitted == requests["output_tokens"].sum()
    assert rates["output_tokens_per_s"] == pytest.approx(emitted / document["measurement"]["end_s"])
    assert result.summary["metrics"]["ttft_s"]["count"] == prefilled
    assert result.summary["metrics"]["e2e_s"]["count"] == (requests["state"] == "finished").sum()
    assert rates["keeps_up"] is not False


def test_tokens_before_the_end_of_the_warm_up_do_not_count():
    whole, rest = (
        servetwin.simulate(CLOSED_LOOP | {"measurement": {"end_s": 60, "warmup_s": warmup_s}}).summary
        for warmup_s in (0, 20)
    )
    first = servetwin.simulate(CLOSED_LOOP | {"measurement": {"end_s": 20}}).summary
    tokens = [
        summary["throughput"]["output_tokens_per_s"] * summary["window"]["measured_s"]
        for summary in (whole, first, rest)
    ]
    # A step in progress when a run is cut off counts in neither part.
    assert tokens[0] - tokens[1] - tokens[2] == pytest.approx(0, abs=64)


def test_a_service_that_cannot_keep_up_is_told_in_plain_words():
    result = servetwin.simulate(OVERLOAD).summary
    rates = result["throughput"]
    assert rates["keeps_up"] is False
    assert rates["offered_requests_per_s"] == pytest.approx(60, rel=0.1)
    assert rates["served_requests_per_s"] < 0.5 * rates["offered_requests_per_s"]
    (warning,) = [text for text in result["warnings"] if "cannot keep up" in text]
    assert "the queue grew throughout" in warning
    calm = OVERLOAD | {"workload": OVERLOAD["workload"] | {"arrivals": {"name": "poisson", "rate_per_s": 5}}}
    calm["workload"]["requests"] = 500
    assert servetwin.simulate(calm).summary["throughput"]["keeps_up"] is True


def test_goodput_and_the_cost_of_tokens_leave_the_drain_out():
    document = OVERLOAD | {"slo": {"ttft_s": {"p99": 5.0}}}
    document["workload"] = document["workload"] | {"requests": 400, "arrivals": {"name": "constant", "rate_per_s": 10}}
    summary = servetwin.simulate(document).summary
    window, rates = summary["window"], summary["throughput"]
    assert window["arrivals_end_s"] == pytest.approx(40.0)
    assert rates["goodput_requests_per_s"] == pytest.approx(400 / 40.0)
    assert rates["goodput_requests_per_s"] == pytest.approx(rates["offered_requests_per_s"])
    assert rates["requests_per_s"] < rates["offered_requests_per_s"]
    assert rates["slo_attainment"] == 1.0
