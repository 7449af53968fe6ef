"""Clients that give up: when, with what they had got, and what becomes of the memory that their requests held."""

import numpy as np
import pytest

from simcore.service.client_timeouts import NO_FIRST_TOKEN, NO_LAST_TOKEN
from tests.e2e.scenarios import differences, merged, run

ONE_SLOT = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "h100-sxm"},
    "scheduler": {"batching": {"name": "chunked-prefill", "max_running_requests": 1}},
}


def both(scenario, folder):
    """The result, which must be the same by jumps and step by step."""
    jumping, stepping = run(scenario, folder, check=True), run(scenario, folder, fast_forward=False, check=True)
    assert differences(jumping, stepping) == []
    return jumping


def queue_of(rows, folder, **timeouts):
    """A trace of (arrival, prompt, output), all with these timeouts."""
    lines = ["arrival_s,prompt_tokens,output_tokens", *(",".join(map(str, row)) for row in rows)]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    return {"trace": "rows.csv", "format": "csv", **timeouts}


def test_who_waits_for_too_long_gives_up_to_the_nanosecond_and_never_runs(tmp_path):
    workload = queue_of([(0.0, 10, 1000), (0.25, 10, 5)], tmp_path, first_token_timeout_s=0.1)
    result = both(merged(ONE_SLOT, {"workload": workload}), tmp_path)
    requests = result.requests
    assert requests["state"].tolist() == ["finished", "rejected"]
    assert requests["reason"][1] == NO_FIRST_TOKEN
    assert requests["end_s"][1] == 0.35
    assert np.isnan(requests["first_scheduled_s"][1])
    assert result.summary["counts"]["rejected_by_reason"] == {NO_FIRST_TOKEN: 1}
    assert result.summary["utilisation"]["prefill_tokens"] == 10


@pytest.mark.parametrize("replicas", [1, 2])
def test_who_gives_up_while_it_runs_keeps_what_it_got_and_frees_its_memory(replicas, tmp_path):
    rows = [(0.0, 400, 1000)] * replicas + [(0.1, 400, 20)] * replicas
    scenario = merged(
        ONE_SLOT, {"cluster": {"replicas": replicas}, "workload": queue_of(rows, tmp_path, timeout_s=0.3)}
    )
    result = both(scenario, tmp_path)
    requests = result.requests
    assert requests["state"].tolist() == ["rejected"] * replicas + ["finished"] * replicas
    given_up = requests["state"] == "rejected"
    assert set(requests["reason"][given_up]) == {NO_LAST_TOKEN}
    assert (requests["end_s"][given_up] == 0.3).all()
    assert (requests["replica"][given_up] >= 0).all()
    # As many tokens as steps that ended by then; the next request starts with the end of the step in progress.
    lasted_s = requests["end_s"][given_up] - requests["first_token_s"][given_up]
    step_s = lasted_s / requests["output_tokens"][given_up]
    assert (requests["output_tokens"][given_up] > 100).all()
    assert (requests["first_scheduled_s"][~given_up] - 0.3 <= 1.1 * step_s).all()
    assert (requests["first_scheduled_s"][~given_up] >= 0.3).all()
    assert np.isnan(requests["tpot_s"][given_up]).all()


def test_the_first_token_or_the_last_in_the_very_nanosecond_is_in_time(tmp_path):
    def run_with(**timeouts):
        workload = queue_of([(0.0, 100, 50)], tmp_path, **timeouts)
        return both(merged(ONE_SLOT, {"workload": workload}), tmp_path).requests

    free = run_with()
    for timeout, due_s in (("first_token_timeout_s", free["ttft_s"][0]), ("timeout_s", free["e2e_s"][0])):
        assert run_with(**{timeout: float(due_s)})["state"][0] == "finished"
        early = run_with(**{timeout: float(due_s) - 1e-9})
        assert (early["state"][0], early["output_tokens"][0]) == ("rejected", 0 if "first" in timeout else 49)


def test_a_client_in_a_closed_loop_sends_on(tmp_path):
    workload = {
        "requests": 100,
        "arrivals": {"name": "closed-loop", "concurrency": 20},
        "prompt_tokens": {"name": "fixed", "tokens": 50},
        "output_tokens": {"name": "uniform", "low": 1, "high": 100},
        "timeout_s": 0.5,
    }
    result = both(merged(ONE_SLOT, {"workload": workload}), tmp_path)
    counts = result.summary["counts"]
    assert counts["finished"] + counts["rejected"] == 100
    assert min(counts["finished"], counts["rejected"]) > 5
    assert (result.requests["e2e_s"][result.requests["state"] == "finished"] <= 0.5).all()


def test_limits_and_objectives_know_of_those_that_gave_up(tmp_path):
    """A limit on requests in flight counts them out again, and none of them kept an objective, first token or not."""
    rows = [(0.02 * index, 50, 200) for index in range(100)]
    scenario = merged(
        ONE_SLOT,
        {
            "workload": queue_of(rows, tmp_path, timeout_s=0.15),
            "scheduler": {"admission": [{"name": "concurrency-limit", "max_requests": 3}]},
            "slo": {"ttft_s": {"p50": 10.0}},
        },
    )
    result = both(scenario, tmp_path)
    counts = result.summary["counts"]
    assert counts["rejected_by_reason"].keys() == {"too many requests in flight", NO_LAST_TOKEN}
    assert result.requests["arrival_s"][result.requests["reason"] == NO_LAST_TOKEN].max() > 1.5
    assert result.summary["slo"]["ttft_s.p50"]["share_within"] == counts["finished"] / 100


def test_tenants_have_patience_of_their_own(tmp_path):
    workload = {
        "requests": 60,
        "arrivals": {"name": "poisson", "rate_per_s": 100.0},
        "prompt_tokens": {"name": "fixed", "tokens": 50},
        "output_tokens": {"name": "fixed", "tokens": 50},
        "tenants": [{"name": "a", "share": 0.5, "timeout_s": 0.2}, {"name": "b", "share": 0.5}],
    }
    requests = both(merged(ONE_SLOT, {"workload": workload}), tmp_path).requests
    gave_up = requests["reason"] == NO_LAST_TOKEN
    assert set(requests["tenant"][gave_up]) == {"a"}
    assert requests["end_s"][gave_up] - requests["arrival_s"][gave_up] == pytest.approx(0.2, abs=1e-9)
