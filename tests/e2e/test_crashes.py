"""Whole runs in which things go wrong: each request has one outcome, tokens come once, jumps change nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.build.simulation import Simulation
from simcore.core.errors import InputError
from simcore.service.resending import LOST_TOO_OFTEN
from simcore.service.stage import NONE_UP
from tests.e2e.outcomes import with_one_outcome_each
from tests.e2e.scenarios import run

SCENARIO = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "l4", "replicas": 3, "routing": "least-requests"},
    "workload": {
        "requests": 100,
        "arrivals": {"name": "poisson", "rate_per_s": 100.0},
        "prompt_tokens": {"name": "uniform", "low": 1, "high": 300},
        "output_tokens": {"name": "uniform", "low": 1, "high": 80},
    },
}


def crash(replica, at_s, restart_after_s=None):
    found = {"name": "crash", "replica": replica, "at_s": at_s}
    return found if restart_after_s is None else found | {"restart_after_s": restart_after_s}


@st.composite
def scenarios(draw):
    times_s = st.floats(0.0, 1.5)
    crashes = st.builds(crash, st.integers(0, 2), times_s, st.none() | st.floats(0.001, 0.5))
    for_s = st.floats(0.001, 0.5)
    on_replica = {"replica": st.integers(0, 2), "at_s": times_s, "for_s": for_s}
    cuts = st.fixed_dictionaries({"name": st.just("partition"), **on_replica})
    slow = st.fixed_dictionaries({"name": st.just("slow-gpu"), **on_replica, "factor": st.floats(1.01, 20.0)})
    numbers = st.lists(st.integers(0, 99), max_size=2)
    poison = st.fixed_dictionaries({"name": st.just("poison"), "requests": numbers, "restart_after_s": for_s})
    by_chance = st.just({"name": "crash", "every_s": 0.3, "until_s": 1.2, "restart_after_s": 0.1})
    workload = SCENARIO["workload"] | draw(st.sampled_from([{}, {"timeout_s": 0.4}]))
    closed = {"arrivals": {"name": "closed-loop", "concurrency": 20}}
    shared = {"prefix": [{"name": "shared", "tokens": {"name": "fixed", "tokens": 48}}]}
    workload |= draw(st.sampled_from([{}, closed, shared]))
    routings = ["round-robin", "least-requests", "least-tokens", "prefix-affinity", "power-of-two"]
    engine = draw(st.sampled_from(["vllm-v1", "sglang", "orca"]))
    orderings = ["fcfs"] if engine == "sglang" else ["fcfs", "vtc", "srpt"]
    return SCENARIO | {
        "seed": draw(st.integers(0, 1000)),
        "engine": engine,
        "memory": draw(st.sampled_from([{}, {"block_size_tokens": 16, "num_gpu_blocks": 60}])),
        "scheduler": {"ordering": draw(st.sampled_from(orderings))},
        "measurement": draw(st.sampled_from([{}, {"end_s": 0.8}])),
        "cluster": SCENARIO["cluster"] | {"routing": draw(st.sampled_from(routings))},
        "workload": workload,
        "faults": draw(st.lists(crashes | cuts | slow | poison | by_chance, min_size=1, max_size=5)),
        "retries": {"attempts": draw(st.integers(0, 2)), "delay_s": draw(st.sampled_from([0.0, 0.05])), "backoff": 2.0},
    }


@settings(max_examples=15, deadline=None)
@given(scenarios())
def test_each_request_has_one_outcome_and_nothing_is_left_behind(tmp_path_factory, scenario):
    _, cluster, result = with_one_outcome_each(scenario, tmp_path_factory.getbasetemp())
    requests = result.requests
    finished, figures = requests["state"] == "finished", result.summary["faults"]
    if finished.all():
        gaps = result.summary["metrics"]["itl_s"]["count"]
        # Of a request that a partition interrupts, the step in progress may compute a token that reaches nobody.
        cut = sum(event["interrupted_requests"] for event in figures["events"] if event["name"] == "partition")
        assert 0 <= gaps - np.maximum(requests["output_tokens"] - 1, 0).sum() <= cut
    if "end_s" not in scenario["measurement"]:
        for batch in cluster.batches:
            assert not batch.requests.by_number
            assert getattr(batch, "is_dead", False) or not batch.scheduler.memory.used_blocks


def test_a_crash_sends_requests_to_the_others_until_the_replica_is_back(tmp_path):
    result = run(SCENARIO | {"faults": [crash(1, 0.3, 0.4)]}, tmp_path)
    figures, requests = result.summary["faults"], result.requests
    assert result.summary["counts"]["finished"] == 100
    assert figures["interrupted_requests"] > 0
    assert figures["replica_down_s"] == pytest.approx(0.4)
    assert (requests["preemptions"] > 0).any()
    steps = result.steps
    own = steps["replica"] == 1
    assert not (own & (steps["start_s"] > 0.3) & (steps["start_s"] < 0.7)).any()
    assert (own & (steps["start_s"] >= 0.7)).any()


def test_without_retries_those_that_are_interrupted_are_rejected(tmp_path):
    result = run(SCENARIO | {"faults": [crash(1, 0.3)], "retries": {"attempts": 0}}, tmp_path)
    figures, counts = result.summary["faults"], result.summary["counts"]
    assert counts["rejected_by_reason"] == {LOST_TOO_OFTEN: figures["interrupted_requests"]}
    assert figures["given_up_requests"] == figures["interrupted_requests"] > 0


def test_with_nobody_up_requests_are_turned_away(tmp_path):
    result = run(SCENARIO | {"faults": [crash(k, 0.5) for k in range(3)]}, tmp_path)
    counts = result.summary["counts"]
    assert set(counts["rejected_by_reason"]) == {NONE_UP}
    assert counts["finished"] + counts["rejected"] == 100
    late = result.requests["arrival_s"] > 0.5
    assert (result.requests["state"][late] == "rejected").all()


def test_a_crash_after_all_is_done_changes_nothing(tmp_path):
    quiet, late = run(SCENARIO, tmp_path), run(SCENARIO | {"faults": [crash(0, 1000.0)]}, tmp_path)
    for name, column in quiet.requests.items():
        np.testing.assert_array_equal(late.requests[name], column)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"faults": [crash(3, 1.0)]}, r"faults\.0\.replica is 3, expected at most 2, the last of 3 replicas"),
        ({"retries": {"attempts": 1}}, r"retries\.attempts is 1, expected no retries without faults"),
        (
            {"faults": [crash(0, 1.0)], "scheduler": {"preemption": {"mode": "swap"}}},
            r"faults\.0\.name is 'crash', expected none, since swap space outlives a replica",
        ),
    ],
)
def test_faults_that_cannot_be_are_refused(changes, message, tmp_path):
    with pytest.raises(InputError, match=message):
        Simulation.prepare(SCENARIO | changes, tmp_path)
