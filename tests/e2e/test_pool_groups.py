"""Whole runs of pools among which requests are divided, and of replicas that are updated meanwhile."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.build.simulation import Simulation
from simcore.core.errors import InputError, ServetwinError
from simcore.service.replica_limits import BEYOND_CONTEXT
from simcore.service.stage import NONE_UP
from tests.e2e.outcomes import with_one_outcome_each
from tests.e2e.scenarios import differences, merged, run, synthetic
from tests.e2e.test_crashes import crash
from tests.e2e.test_gateway import guarded_scenarios

LENGTHS = {
    "prompt_tokens": {"name": "uniform", "low": 1, "high": 300},
    "output_tokens": {"name": "uniform", "low": 1, "high": 80},
}
TWO_MODELS = {
    "model": "llama-3.1-8b",
    "cluster": {
        "accelerator": "h100-sxm",
        "routing": "least-requests",
        "assignment": {"name": "by-tenant", "pools": {"code": "small"}},
        "pools": [{"name": "large", "replicas": 2}, {"name": "small", "model": "smollm2-135m", "replicas": 2}],
    },
    "workload": {
        "streams": [
            {"tenant": tenant, "requests": 60, "arrivals": {"name": "poisson", "rate_per_s": 30.0}, **LENGTHS}
            for tenant in ("chat", "code")
        ]
    },
}
CANARY = {
    "model": "smollm2-135m",
    "cluster": {
        "accelerator": "l4",
        "routing": "least-requests",
        "assignment": {"name": "split", "shares": {"new": 0.3}},
        "pools": [{"name": "old", "replicas": 3}, {"name": "new", "precision": {"weights": "int8"}}],
    },
    "workload": {"requests": 200, "arrivals": {"name": "poisson", "rate_per_s": 100.0}, **LENGTHS},
}


def assigned(scenario, assignment):
    return scenario | {"cluster": scenario["cluster"] | {"assignment": assignment}}


ROLLING = {"name": "rolling", "pool": "old", "to": "new", "at_s": 0.5, "load_s": 0.3}


def both(scenario, folder):
    """The result, which must be the same by jumps and step by step."""
    jumping, stepping = run(scenario, folder, check=True), run(scenario, folder, fast_forward=False, check=True)
    assert differences(jumping, stepping) == []
    return jumping


def test_requests_are_served_by_the_model_of_their_tenant(tmp_path):
    requests = both(TWO_MODELS, tmp_path).requests
    code = requests["tenant"] == "code"
    assert set(requests["replica"][code].tolist()) == {2, 3}
    assert set(requests["replica"][~code].tolist()) == {0, 1}
    assert np.nanmean(requests["tpot_s"][code]) < 0.5 * np.nanmean(requests["tpot_s"][~code])


def test_no_other_model_steps_in_where_none_is_up_or_the_context_is_too_short(tmp_path):
    downs = [crash(2, 0.0), crash(3, 0.0)]
    counts = run(TWO_MODELS | {"faults": downs, "retries": {}}, tmp_path).summary["counts"]
    assert counts["rejected_by_reason"] == {NONE_UP: 60}
    streams = [dict(stream) for stream in TWO_MODELS["workload"]["streams"]]
    streams[1]["prompt_tokens"] = {"name": "fixed", "tokens": 9000}
    counts = run(TWO_MODELS | {"workload": {"streams": streams}}, tmp_path).summary["counts"]
    assert counts["rejected_by_reason"] == {BEYOND_CONTEXT: 60}


def test_a_smaller_model_takes_what_the_larger_cannot(tmp_path):
    workload = synthetic({"name": "at-once"}, 200, 20, requests=40)
    at_once = {"request_s": 0.0, "per_prompt_token_s": 0.0}
    few = {"scheduler": {"batching": {"max_running_requests": 4}}, "host": at_once}
    scenario = merged(assigned(TWO_MODELS, {"name": "fall-back", "waiting_requests": 1}), few) | {"workload": workload}
    requests = both(scenario, tmp_path).requests
    assert (requests["replica"] < 2).sum() == 2
    assert (requests["replica"] >= 2).sum() == 38


def test_a_canary_gets_its_share_of_users_and_is_judged(tmp_path):
    slo = {"tpot_s": {"p99": 0.0014}}
    result = run(CANARY | {"slo": slo}, tmp_path)
    groups, requests = result.summary["groups"], result.requests
    assert groups["old"]["requests"] + groups["new"]["requests"] == 200
    assert groups["new"]["requests"] == (requests["replica"] == 3).sum() == pytest.approx(60, abs=20)
    new = groups["new"]
    assert new["good_difference"]["low"] < new["good_difference"]["value"] < new["good_difference"]["high"]
    own = requests["ttft_s"][requests["replica"] == 3]
    assert new["ttft_s"] == pytest.approx(own.mean())
    assert new["verdict"] in ("better", "worse", "undecided")


def test_a_rolling_update_takes_out_one_replica_at_a_time_and_interrupts_nobody(tmp_path):
    result = both(CANARY | {"updates": [ROLLING]}, tmp_path)
    assert result.summary["counts"]["finished"] == 200
    assert not result.requests["preemptions"].any()
    (update,) = result.summary["updates"]
    assert update["updated_replicas"] == 3
    assert update["ready_s"] >= 0.5 + 3 * 0.3
    steps = result.steps
    starts = [np.sort(steps["start_s"][steps["replica"] == replica]) for replica in range(3)]
    pauses = []
    for own in starts:
        widest = np.argmax(np.diff(own))
        pauses.append((own[widest], own[widest + 1]))
    assert all(end - start > 0.3 for start, end in pauses)
    assert all(one[1] - 0.02 <= other[0] + 0.31 for one, other in pairwise(pauses))
    decodes = (steps["replica"] == 0) & (steps["prefill_tokens"] == 0) & (steps["decoding_requests"] == 1)
    seconds = steps["first_step_s"]
    before, after = (decodes & (steps["start_s"] < 0.5)), (decodes & (steps["start_s"] > update["ready_s"]))
    assert before.any()
    assert seconds[after].mean() < seconds[before].mean()


def test_a_blue_green_update_keeps_all_capacity_and_costs_replicas_beside(tmp_path):
    update = {key: value for key, value in ROLLING.items() if key != "name"} | {"name": "blue-green"}
    result = both(CANARY | {"updates": [update]}, tmp_path)
    assert result.summary["counts"]["finished"] == 200
    (figures,) = result.summary["updates"]
    assert figures["ready_s"] == pytest.approx(0.8)
    assert figures["extra_replica_s"] >= 3 * 0.3
    assert figures["drained_s"] >= 0.8


@st.composite
def updated_scenarios(draw):
    """Two pools of a gateway's scenarios, one of which is updated while things go wrong."""
    scenario = draw(guarded_scenarios())
    pools = [{"name": "old", "replicas": 2}, {"name": "new", "replicas": 1, "memory": {"num_gpu_blocks": 80}}]
    shares = {"name": "split", "shares": {"new": 0.3}}
    cluster = {"accelerator": "l4", "routing": scenario["cluster"]["routing"], "pools": pools}
    name = draw(st.sampled_from([{"name": "blue-green"}, {"name": "rolling"}, {"name": "rolling", "most_out": 2}]))
    times = {"at_s": draw(st.floats(0.0, 1.0)), "load_s": draw(st.floats(0.001, 0.3))}
    queued = "most_open_requests" in scenario["gateway"]
    return scenario | {
        "cluster": cluster | draw(st.sampled_from([{}] if queued else [{}, {"assignment": shares}])),
        "updates": [{"pool": "old", "to": "new", **times, **name}],
    }


@settings(max_examples=20, deadline=None)
@given(updated_scenarios())
def test_each_request_has_one_outcome_while_replicas_are_updated(tmp_path_factory, scenario):
    _, cluster, result = with_one_outcome_each(scenario, tmp_path_factory.getbasetemp())
    if "end_s" not in scenario["measurement"]:
        assert result.summary["updates"][0]["updated_replicas"] == 2
        for batch in cluster.batches:
            assert not batch.requests.by_number
            assert batch.is_dead or not batch.scheduler.memory.used_blocks


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (assigned(TWO_MODELS, None), r"cluster\.assignment is missing, expected a policy that"),
        (
            assigned(TWO_MODELS, {"name": "split", "shares": {"smal": 0.1}}),
            "shares is 'smal', expected one of large, small",
        ),
        (CANARY | {"updates": [ROLLING | {"to": "newer"}]}, r"updates\.0\.to is 'newer'"),
        (TWO_MODELS | {"updates": [ROLLING | {"pool": "large", "to": "small"}]}, "but their models differ"),
    ],
)
def test_what_cannot_be_is_refused(scenario, message, tmp_path):
    with pytest.raises((InputError, ServetwinError), match=message):
        Simulation.prepare(scenario, tmp_path)
