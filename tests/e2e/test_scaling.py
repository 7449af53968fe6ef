"""Whole runs in which replicas come and go: starts and costs by hand, no request lost, jumps change nothing."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.build.cluster import build_cluster
from simcore.build.simulation import Simulation
from simcore.core.errors import InputError, UnknownNameError
from simcore.recording.recorder import Recorder
from simcore.service.clock import Clock
from tests.e2e.scenarios import differences, run

START = {"boot_s": 10.0, "compile_s": 4.0, "warm_up_s": 1.0, "read_gb_per_s": 0.1, "wake_s": 0.5}
SCALING = {"max_replicas": 3, "interval_s": 10.0, "in_wait_s": 0.0, "start": START}
SCENARIO = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "l4", "routing": "least-requests", "price_usd_per_h": 3600.0},
    "workload": {
        "requests": 200,
        "arrivals": {"name": "poisson", "rate_per_s": 2.0},
        "prompt_tokens": {"name": "uniform", "low": 1, "high": 300},
        "output_tokens": {"name": "uniform", "low": 1, "high": 80},
    },
    "slo": {"ttft_s": {"p99": 1.0}},
}


def scaled(policy, **changes):
    cluster = SCENARIO["cluster"] | {"scaling": SCALING | {"policy": policy} | changes}
    return SCENARIO | {"cluster": cluster}


def phases(result, replica):
    own = result.fleet["replica"] == replica
    names = ("phase", "start_s", "end_s")
    return [tuple(row) for row in zip(*(result.fleet[name][own].tolist() for name in names), strict=True)]


ROUTINGS = [
    "round-robin",
    "random",
    "least-requests",
    "power-of-two",
    "prefix-affinity",
    "weighted",
    "slo-aware",
    "kv-aware",
]
SCHEDULE = {"name": "schedule", "replicas": {0: 1, 20: 2, 60: 1}, "period_s": 1000.0}


def test_a_cold_start_takes_boot_weights_compile_and_warm_up(tmp_path):
    result = run(scaled(SCHEDULE), tmp_path)
    weights_s = Simulation.prepare(SCENARIO, tmp_path).memory.replica_weight_bytes / 0.1e9
    assert weights_s == pytest.approx(2.69, abs=0.01)  # 134.5 M parameters in bf16 at 100 MB/s
    serves_s = 20 + 10 + weights_s + 5
    (starting, begun_s, ready_s), (serving, from_s, drained_s), *rest = phases(result, 1)
    assert (starting, begun_s, serving) == ("starting", 20.0, "serving")
    assert ready_s == from_s == pytest.approx(serves_s, abs=1e-6)
    assert f"takes {serves_s - 20:.4g} s where no other starts beside it" in " ".join(result.summary["notices"])
    assert drained_s == 60.0
    own = result.steps["replica"] == 1
    assert result.steps["start_s"][own].min() >= serves_s
    assert [phase for phase, *_ in rest] in ([], ["draining"])


def test_an_instance_is_paid_from_its_start_to_its_end(tmp_path):
    result = run(scaled(SCHEDULE), tmp_path)
    end_s = result.summary["run"]["simulated_s"]
    *_, (_, _, gone_s) = phases(result, 1)
    paid_s = end_s + gone_s - 20.0
    assert result.summary["cost"]["usd"] == pytest.approx(paid_s)  # a dollar a second
    assert result.summary["cost"]["usd_per_h"] == pytest.approx(3600 * paid_s / end_s)
    assert sum(result.summary["scaling"]["instance_s"].values()) == pytest.approx(paid_s)
    until_s = float(result.service["end_s"][-1])
    assert result.service["usd"].sum() == pytest.approx(until_s + min(gone_s, until_s) - 20.0)


def test_one_that_sleeps_wakes_by_pcie_alone_and_costs_its_share(tmp_path):
    result = run(scaled(SCHEDULE, warm_replicas=1, warm_price_share=0.25), tmp_path)
    simulation = Simulation.prepare(SCENARIO, tmp_path)
    wake_s = simulation.memory.replica_weight_bytes / simulation.accelerator.pcie_bytes_per_s + 0.5
    assert phases(result, 1)[:3] == [
        ("asleep", 0.0, 20.0),
        ("waking", 20.0, pytest.approx(20 + wake_s, abs=1e-6)),
        ("serving", pytest.approx(20 + wake_s, abs=1e-6), 60.0),
    ]
    # another is started to sleep in its place; the one that is not wanted any more goes
    assert [phase for phase, *_ in phases(result, 2)] == ["warming", "asleep"]
    spent = result.summary["scaling"]["instance_s"]
    paid_s = sum(spent.values()) - 0.75 * spent["asleep"]
    assert result.summary["cost"]["usd"] == pytest.approx(paid_s)


def test_a_pool_that_never_changes_is_the_fixed_pool(tmp_path):
    fixed = run(SCENARIO | {"cluster": SCENARIO["cluster"] | {"replicas": 2}}, tmp_path)
    kept = scaled({"name": "fixed"}, max_replicas=2)
    same = run(kept | {"cluster": kept["cluster"] | {"replicas": 2}}, tmp_path)
    for table, other in ((fixed.requests, same.requests), (fixed.steps, same.steps)):
        for name, column in table.items():
            np.testing.assert_array_equal(other[name], column)
    for figure, value in fixed.summary["cost"].items():
        assert same.summary["cost"][figure] == (value if isinstance(value, str) else pytest.approx(value))
    assert same.summary["utilisation"] == pytest.approx(fixed.summary["utilisation"])


def test_notice_lets_a_replica_finish_and_another_take_its_place(tmp_path):
    spot = {"notice_s": 5.0, "reclaimed": [{"replica": 0, "at_s": 30.0}]}
    scenario = scaled({"name": "fixed"}, max_replicas=2)
    result = run(scenario | {"cluster": scenario["cluster"] | {"replicas": 2, "spot": spot}}, tmp_path)
    assert result.summary["counts"]["finished"] == 200
    figures = result.summary["scaling"]
    assert (figures["reclaimed"], figures["starts"]) == (1, 1)
    taken = [(phase, until_s) for phase, from_s, until_s in phases(result, 0) if from_s <= 30.0 and phase != "starting"]
    assert taken[0] == ("serving", 30.0)
    assert taken[-1][1] <= 35.0
    assert result.fleet["start_s"][result.fleet["phase"] == "starting"].tolist() == [30.0]


def test_without_notice_requests_are_sent_again(tmp_path):
    busy = SCENARIO["workload"] | {"arrivals": {"name": "poisson", "rate_per_s": 100.0}}
    spot = {"notice_s": 0.0, "reclaimed": [{"replica": 0, "at_s": 1.0}]}
    scenario = scaled({"name": "fixed"}, max_replicas=2) | {"workload": busy}
    scenario |= {"cluster": scenario["cluster"] | {"replicas": 2, "spot": spot}}
    again = run(scenario, tmp_path)
    assert again.summary["scaling"]["interrupted_requests"] > 0
    assert again.summary["counts"]["finished"] == 200
    given_up = run(scenario | {"retries": {"attempts": 0}}, tmp_path)
    assert given_up.summary["counts"]["rejected"] == given_up.summary["scaling"]["given_up_requests"] > 0


def test_with_nobody_up_requests_wait_for_who_is_on_the_way(tmp_path):
    spot = {"notice_s": 0.0, "reclaimed": [{"replica": 0, "at_s": 30.0}]}
    scenario = scaled({"name": "fixed"}, max_replicas=1)
    scenario |= {"cluster": scenario["cluster"] | {"spot": spot}}
    result = run(scenario, tmp_path)
    assert result.summary["counts"]["finished"] == 200
    late = (result.requests["arrival_s"] > 30.0) & (result.requests["arrival_s"] < 40.0)
    assert (result.requests["ttft_s"][late] > 7.0).all()
    patience = scenario | {"workload": SCENARIO["workload"] | {"timeout_s": 2.0}}
    counts = run(patience, tmp_path).summary["counts"]
    assert counts["rejected"] > 10
    assert counts["finished"] + counts["rejected"] == 200


@st.composite
def scenarios(draw):
    policy = draw(
        st.sampled_from(
            [
                {"name": "queue", "requests_per_replica": 2.0},
                {"name": "utilisation", "target": 0.05},
                {"name": "latency", "ttft_s": 0.02},
                {"name": "forecast", "requests_per_s": 30.0},
                {"name": "schedule", "replicas": {0: 1, 1: 4, 2: 2, 3: 1}, "period_s": 4.0},
                {"name": "fixed"},
            ]
        )
    )
    seconds = st.sampled_from([0.0, 0.01, 0.1, 0.5])
    start = {name: draw(seconds) for name in ("boot_s", "compile_s", "warm_up_s", "wake_s")}
    scaling = {
        "policy": policy,
        "max_replicas": 4,
        "interval_s": draw(st.sampled_from([0.05, 0.2])),
        "in_wait_s": draw(st.sampled_from([0.0, 0.3])),
        "out_wait_s": draw(st.sampled_from([0.0, 0.1])),
        "warm_replicas": draw(st.integers(0, 2)),
        "start": start | {"weights_from": draw(st.sampled_from(["network", "drive"])), "read_gb_per_s": 2.0},
    }
    cluster = SCENARIO["cluster"] | {
        "replicas": draw(st.integers(1, 4)),
        "routing": draw(st.sampled_from(ROUTINGS)),
        "scaling": scaling,
    }
    reclaimed = st.builds(lambda place, at_s: {"replica": place, "at_s": at_s}, st.integers(0, 7), st.floats(0.0, 2.0))
    spot = {"notice_s": draw(seconds), "reclaimed": draw(st.lists(reclaimed, max_size=4))}
    if draw(st.booleans()):
        cluster["spot"] = spot | draw(st.sampled_from([{}, {"mean_life_s": 0.5}]))
    crashes = st.builds(
        lambda place, at_s, back_s: {"name": "crash", "replica": place, "at_s": at_s, "restart_after_s": back_s},
        st.integers(0, 3),
        st.floats(0.0, 1.5),
        st.floats(0.01, 0.5),
    )
    workload = SCENARIO["workload"] | {"requests": 150, "arrivals": {"name": "poisson", "rate_per_s": 100.0}}
    closed = {"arrivals": {"name": "closed-loop", "concurrency": 20}}
    shared = {"prefix": [{"name": "shared", "tokens": {"name": "fixed", "tokens": 48}}]}
    workload |= draw(st.sampled_from([{}, closed, shared, {"timeout_s": 0.4}]))
    faults = draw(st.lists(crashes, max_size=3))
    hedging = {"hedging": {"name": "fixed-delay", "after_s": 0.02}}
    return SCENARIO | {
        "seed": draw(st.integers(0, 1000)),
        "memory": draw(st.sampled_from([{}, {"block_size_tokens": 16, "num_gpu_blocks": 60}])),
        "cluster": cluster,
        "workload": workload,
        **({"faults": faults} if faults else {}),
        **draw(st.sampled_from([{}, {"gateway": hedging}])),
        "measurement": draw(st.sampled_from([{}, {}, {"end_s": 1.2}])),
    }


@settings(max_examples=12, deadline=None)
@given(scenarios())
def test_each_request_has_one_outcome_whatever_comes_and_goes(tmp_path_factory, scenario):
    simulation = Simulation.prepare(scenario, tmp_path_factory.getbasetemp())
    clock, recorder = Clock(), Recorder()
    cluster = build_cluster(clock, recorder, simulation.pools, simulation.workload, fast_forward=True, check=True)
    result = simulation.run_on(clock, recorder, cluster)
    requests, cut_off = result.requests, "end_s" in scenario["measurement"]
    assert len(set(requests["request_id"].tolist())) == len(requests["request_id"])
    assert ((requests["reason"] != "") == (requests["state"] == "rejected")).all()
    if not cut_off:
        assert len(requests["request_id"]) == 150
        assert not (requests["state"] == "unfinished").any()
        for batch in cluster.batches:
            memory = batch.scheduler.memory
            assert not batch.requests.by_number
            assert getattr(batch, "is_dead", False) or memory.free_blocks == memory.unpinned_blocks
    finished = requests["state"] == "finished"
    if finished.all():
        tokens = np.maximum(requests["output_tokens"] - 1, 0).sum()
        assert result.summary["metrics"]["itl_s"]["count"] == tokens
    if "spot" not in scenario["cluster"] and "faults" not in scenario and "timeout_s" not in scenario["workload"]:
        assert not (requests["state"] == "rejected").any()
    _phases_follow_one_another(result)
    for other in (simulation.run(fast_forward=False, check=True), simulation.run()):
        assert not differences(result, other)
        for name, column in result.fleet.items():
            np.testing.assert_array_equal(other.fleet[name], column)


def _phases_follow_one_another(result):
    """A replica is in one phase at a time, and computes only where it serves or drains, until its requests end."""
    follows = {
        "starting": ("serving",),
        "waking": ("serving", "asleep"),
        "warming": ("asleep",),
        "serving": ("draining", "asleep"),
        "draining": ("serving", "asleep"),
        "asleep": ("waking",),
    }
    for replica in np.unique(result.fleet["replica"]).tolist():
        own = phases(result, replica)
        for (phase, _, end_s), (other, start_s, _) in pairwise(own):
            assert end_s <= start_s
            if end_s == start_s:
                assert other in (*follows[phase], "starting", "warming")
        requests, end_s = result.requests, result.summary["run"]["simulated_s"]
        if own[-1][0] == "draining" and own[-1][2] == end_s and not (requests["state"] == "unfinished").any():
            assert requests["end_s"][requests["replica"] == replica].max() == end_s
        steps_s = result.steps["start_s"][result.steps["replica"] == replica].tolist()
        spans = [(start_s, end_s) for phase, start_s, end_s in own if phase in ("serving", "draining")]
        for step_s in steps_s:
            assert any(start_s <= step_s <= end_s for start_s, end_s in spans)


@pytest.mark.parametrize(
    ("cluster", "error", "message"),
    [
        (
            {"scaling": {"max_replicas": 3, "min_replicas": 2}},
            InputError,
            r"cluster\.replicas is 1, expected from cluster\.scaling\.min_replicas, 2, to max_replicas, 3",
        ),
        ({"spot": {}}, InputError, r"cluster\.spot\.notice_s is 30\.0, expected cluster\.scaling beside it"),
        (
            {"scaling": {"max_replicas": 3, "policy": "quue"}},
            UnknownNameError,
            r"cluster\.scaling\.policy\.name .*quue.*queue",
        ),
        (
            {"scaling": {"max_replicas": 1, "min_replicas": 2}},
            InputError,
            r"cluster\.scaling.*expected a max_replicas of at least the min_replicas of 2",
        ),
        (
            {"scaling": {"max_replicas": 3}, "pipeline_parallel": 2},
            InputError,
            r"cluster\.scaling\.max_replicas is 3, expected no scaling, since pipeline stages have batches in flight",
        ),
        (
            {"scaling": {"max_replicas": 2}, "spot": {"reclaimed": [{"replica": 9, "at_s": 1.0}]}},
            InputError,
            r"cluster\.spot\.reclaimed\.0\.replica is 9, expected from 0 to 3, a replica of the pool",
        ),
    ],
)
def test_what_cannot_come_and_go_is_refused(cluster, error, message, tmp_path):
    with pytest.raises(error, match=message):
        Simulation.prepare(SCENARIO | {"cluster": SCENARIO["cluster"] | cluster}, tmp_path)
