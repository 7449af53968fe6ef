"""Each kind of fault does to requests what can be worked out by hand."""

import numpy as np
import pytest

from simcore.build.fault_times import all_strikes
from simcore.build.simulation import Simulation
from simcore.core.errors import InputError
from simcore.scenario import parse_scenario
from simcore.scenario.sections import Crash
from simcore.service.resending import LOST_TOO_OFTEN, NO_BUDGET
from tests.e2e.scenarios import differences, merged, run, synthetic
from tests.e2e.test_crashes import SCENARIO

ALONE = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "l4", "replicas": 1},
    "workload": synthetic({"name": "at-once"}, 100, 40, requests=1),
}
PAIR = {
    "model": "smollm2-135m",
    "cluster": {
        "accelerator": "l4",
        "pools": [{"name": "prefill", "role": "prefill"}, {"name": "decode", "role": "decode"}],
        "handover": {"transfer": "whole"},
    },
    "workload": synthetic({"name": "constant", "rate_per_s": 10.0}, 200, 20, requests=20),
}


def step_ends_ns(result):
    """When the steps end of one request that is alone: each row is steps of the same kind."""
    return np.rint(result.requests["end_s"] * 1e9).astype(np.int64)


def slow(replica, at_s, for_s, factor):
    return {"name": "slow-gpu", "replica": replica, "at_s": at_s, "for_s": for_s, "factor": factor}


def durations_ns(folder):
    """How long each step of the lone request takes."""
    ends_s = []
    for tokens in range(1, 41):
        workload = synthetic({"name": "at-once"}, 100, tokens, requests=1)
        ends_s += run(ALONE | {"workload": workload}, folder).requests["end_s"].tolist()
    return np.diff(np.rint(np.array(ends_s) * 1e9).astype(np.int64), prepend=0)


def test_steps_that_begin_while_a_gpu_is_slow_take_so_many_times_as_long(tmp_path):
    own_ns = durations_ns(tmp_path)
    from_ns, until_ns = int(own_ns[:10].sum()) - 5, int(own_ns[:20].sum())
    clock_ns = 0
    for each_ns in own_ns.tolist():
        clock_ns += round(each_ns * 2.5) if from_ns <= clock_ns < until_ns else each_ns
    faults = [slow(0, from_ns / 1e9, (until_ns - from_ns) / 1e9, 2.5)]
    for fast_forward in (True, False):
        result = run(ALONE | {"faults": faults}, tmp_path, fast_forward=fast_forward)
        assert step_ends_ns(result)[0] == clock_ns
    assert result.summary["faults"]["replica_down_s"] == 0


def test_slow_times_that_overlap_multiply(tmp_path):
    once = run(ALONE | {"faults": [slow(0, 0.0, 9.0, 6.0)]}, tmp_path)
    twice = run(ALONE | {"faults": [slow(0, 0.0, 9.0, 2.0), slow(0, 0.0, 9.0, 3.0)]}, tmp_path)
    assert step_ends_ns(once)[0] == step_ends_ns(twice)[0]


def test_a_replica_out_of_reach_gets_nothing_and_keeps_its_cache(tmp_path):
    shared = {"prefix": [{"name": "shared", "tokens": {"name": "fixed", "tokens": 48}}]}
    scenario = SCENARIO | {"workload": SCENARIO["workload"] | shared}
    cut = {"name": "partition", "replica": 1, "at_s": 0.3, "for_s": 0.4}
    result = run(scenario | {"faults": [cut]}, tmp_path, check=True)
    stepwise = run(scenario | {"faults": [cut]}, tmp_path, check=True, fast_forward=False)
    assert not differences(result, stepwise)
    figures, requests = result.summary["faults"], result.requests
    assert result.summary["counts"]["finished"] == 100
    assert figures["interrupted_requests"] > 0
    assert figures["replica_down_s"] == pytest.approx(0.4)
    meanwhile = (requests["first_scheduled_s"] > 0.31) & (requests["first_scheduled_s"] < 0.7)
    assert meanwhile.any()
    assert not (meanwhile & (requests["replica"] == 1)).any()
    first = np.flatnonzero((requests["replica"] == 1) & (requests["first_scheduled_s"] >= 0.7))[0]
    assert requests["cached_tokens"][first] == 48
    crash = {"name": "crash", "replica": 1, "at_s": 0.3, "restart_after_s": 0.4}
    crashed = run(scenario | {"faults": [crash]}, tmp_path)
    first = np.flatnonzero((crashed.requests["replica"] == 1) & (crashed.requests["first_scheduled_s"] >= 0.7))[0]
    assert crashed.requests["cached_tokens"][first] == 0


def test_a_poisoned_request_takes_down_a_replica_with_each_attempt_and_is_given_up(tmp_path):
    fault = {"name": "poison", "requests": [10], "restart_after_s": 0.1}
    scenario = SCENARIO | {"faults": [fault], "retries": {"attempts": 2, "delay_s": 0.01}}
    result = run(scenario, tmp_path, check=True)
    figures, requests = result.summary["faults"], result.requests
    assert [event["name"] for event in figures["events"]] == ["poison"] * 3
    assert requests["state"][10] == "rejected"
    assert requests["reason"][10] == LOST_TOO_OFTEN
    assert requests["output_tokens"][10] == 0
    assert figures["replica_down_s"] == pytest.approx(0.3)
    assert not differences(result, run(scenario, tmp_path, check=True, fast_forward=False))


def test_poison_by_chance_strikes_its_share(tmp_path):
    fault = {"name": "poison", "share": 0.1, "restart_after_s": 0.01}
    result = run(SCENARIO | {"faults": [fault], "retries": {"attempts": 0}}, tmp_path)
    deaths = len(result.summary["faults"]["events"])
    assert 3 <= deaths <= 20
    assert result.summary["counts"]["rejected"] == result.summary["faults"]["given_up_requests"] >= deaths


def test_a_budget_bounds_the_attempts_of_all(tmp_path):
    crash = {"name": "crash", "replica": 1, "at_s": 0.7}
    spent = {"attempts": 3, "budget_share": 0.0, "budget_least": 2}
    result = run(SCENARIO | {"faults": [crash], "retries": spent}, tmp_path)
    figures = result.summary["faults"]
    assert figures["interrupted_requests"] - figures["given_up_requests"] == 2
    assert figures["given_up_requests"] > 0
    assert result.summary["counts"]["rejected_by_reason"] == {NO_BUDGET: figures["given_up_requests"]}


def test_each_attempt_waits_longer_by_the_backoff(tmp_path):
    crashes = [{"name": "crash", "replica": 0, "at_s": at_s, "restart_after_s": 1e-6} for at_s in (0.02, 0.5, 1.5)]
    workload = synthetic({"name": "at-once"}, 100, 2000, requests=1)
    scenario = ALONE | {"workload": workload, "faults": crashes, "retries": {"delay_s": 0.1, "backoff": 3.0}}
    steps = run(scenario, tmp_path).steps
    pauses = steps["start_s"][1:] - steps["end_s"][:-1]
    restarts = steps["start_s"][1:][pauses > 0.01]
    np.testing.assert_allclose(restarts, [0.12, 0.8, 2.4], atol=1e-9)


def test_all_transfers_of_a_bad_time_are_lost_and_no_others(tmp_path):
    fault = {"name": "transfer-loss", "at_s": 0.45, "for_s": 0.5, "share": 1.0}
    scenario = merged(PAIR, {"cluster": {"handover": {"retries": 0}}}) | {"faults": [fault]}
    result = run(scenario, tmp_path, check=True)
    again = result.requests["preemptions"] > 0
    assert result.summary["handover"]["recomputed"] == again.sum()
    landed_s = result.requests["landed_s"]
    np.testing.assert_array_equal(again, (landed_s >= 0.45) & (landed_s < 0.95))
    assert 4 <= again.sum() <= 6


def test_a_slow_link_takes_as_much_longer_as_it_has_less(tmp_path):
    fault = {"name": "slow-link", "replica": 0, "at_s": 0.0, "for_s": 9.0, "share": 0.1}
    quiet, slowed = run(PAIR, tmp_path), run(PAIR | {"faults": [fault]}, tmp_path, check=True)
    waits = [result.summary["handover"]["transfer_wait_s"]["mean"] - 1e-5 for result in (quiet, slowed)]
    assert waits[1] == pytest.approx(10 * waits[0], rel=1e-3)


def test_chance_strikes_at_the_same_times_for_a_seed_and_as_often_as_it_says():
    fault = {"name": "crash", "every_s": 10.0, "until_s": 10_000.0, "restart_after_s": 1.0}
    scenarios = [parse_scenario(SCENARIO | {"seed": seed, "faults": [fault]}) for seed in (1, 1, 2)]
    one, same, other = (list(all_strikes(scenario, Crash, 3)) for scenario in scenarios)
    assert one == same
    assert one != other
    assert len(one) == pytest.approx(1000, abs=100)
    counts = np.bincount([replica for _, _, replica in one])
    assert (abs(counts - len(one) / 3) < 80).all()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"name": "crash", "replica": 1}, r"faults\.0.*either at_s or every_s"),
        ({"name": "crash", "at_s": 1.0}, r"faults\.0.*a replica where at_s says when"),
        ({"name": "crash", "every_s": 1.0}, r"faults\.0.*until_s with every_s"),
        (slow(0, 1.0, 1.0, 0.5), r"faults\.0\.factor is 0\.5"),
        ({"name": "transfer-loss", "at_s": 0.0, "for_s": 1.0, "share": 0.5}, "since no pool hands requests over"),
        ({"name": "fire"}, r"faults\.0\.name is 'fire'"),
    ],
)
def test_faults_that_cannot_be_are_refused(fault, message, tmp_path):
    with pytest.raises(InputError, match=message):
        Simulation.prepare(SCENARIO | {"faults": [fault]}, tmp_path)
