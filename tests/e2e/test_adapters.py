"""Whole runs with adapters: what they take, and whom they make wait."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.build.simulation import Simulation
from simcore.core.errors import InputError
from tests.e2e.scenarios import differences, merged, run, synthetic
from tests.e2e.test_crashes import SCENARIO

BASE = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm"},
    "workload": synthetic({"name": "poisson", "rate_per_s": 40.0}, (50, 400), (5, 60), requests=80),
}
ADAPTERS = {"count": 20, "slots": 4, "rank": 16}


def both(scenario, folder):
    """The result, which must be the same by jumps and step by step."""
    jumping, stepping = run(scenario, folder, check=True), run(scenario, folder, fast_forward=False, check=True)
    assert differences(jumping, stepping) == []
    return jumping


def test_slots_take_their_bytes_from_the_kv_cache(tmp_path):
    plain, adapted = (
        Simulation.prepare(BASE | more, tmp_path) for more in ({}, {"adapters": ADAPTERS | {"slots": 100}})
    )
    block_bytes = plain.memory.decisive.block_bytes
    taken_bytes = 100 * 41_943_040 * 2
    assert plain.total_blocks - adapted.total_blocks == pytest.approx(taken_bytes / block_bytes, abs=1)


def test_a_lone_request_pays_for_the_load_once_and_for_each_step(tmp_path):
    lone = BASE | {"workload": synthetic({"name": "at-once"}, 100, 20, requests=1)}
    plain, adapted = run(lone, tmp_path), both(lone | {"adapters": ADAPTERS}, tmp_path)
    simulation = Simulation.prepare(lone | {"adapters": ADAPTERS}, tmp_path)
    cost = simulation.pools[0].adapters
    steps_ns = cost.step_ns(1, 100) + 19 * cost.step_ns(1, 1)
    added_s = adapted.requests["e2e_s"][0] - plain.requests["e2e_s"][0]
    assert added_s == pytest.approx((cost.load_ns + steps_ns) / 1e9, abs=1e-8)
    assert cost.load_ns == pytest.approx(41_943_040 * 2 / 64e9 * 1e9, rel=0.01)
    assert adapted.summary["adapters"] == {"loads": 1}


def test_no_more_adapters_run_than_there_are_slots_and_others_go_before(tmp_path):
    one, all_of_them = (
        both(BASE | {"adapters": ADAPTERS | {"slots": slots, "popularity": 0.0}}, tmp_path) for slots in (1, 20)
    )
    assert one.summary["metrics"]["ttft_s"]["mean"] > 5 * all_of_them.summary["metrics"]["ttft_s"]["mean"]
    assert all_of_them.summary["adapters"]["loads"] <= 20 < one.summary["adapters"]["loads"]
    order = np.argsort(one.requests["first_scheduled_s"], kind="stable")
    assert (np.diff(order) < 0).any(), "who needs a slot is passed over"
    assert one.summary["counts"]["finished"] == 80


@settings(max_examples=10, deadline=None)
@given(
    slots=st.integers(1, 4),
    popularity=st.sampled_from([0.0, 1.0]),
    blocks=st.sampled_from([40, 400]),
    faults=st.sampled_from([[], [{"name": "crash", "replica": 1, "at_s": 0.4, "restart_after_s": 0.2}]]),
    timeout=st.sampled_from([{}, {"timeout_s": 1.0}]),
)
def test_jumps_change_nothing_and_all_are_served(tmp_path_factory, slots, popularity, blocks, faults, timeout):
    scenario = SCENARIO | {
        "adapters": {"count": 10, "slots": slots, "popularity": popularity},
        "memory": {"block_size_tokens": 16, "num_gpu_blocks": blocks},
        "workload": SCENARIO["workload"] | timeout,
        "faults": faults or None,
    }
    result = both(scenario, tmp_path_factory.getbasetemp())
    counts = result.summary["counts"]
    assert counts["finished"] + counts["rejected"] == 100
    assert timeout or counts["finished"] == 100


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "gpt-oss-20b"}, "gpt-oss-20b has layers other than plain attention"),
        ({"scheduler": {"preemption": {"mode": "swap"}}}, "since requests return from swap space"),
        (
            {"workload": {"prefix": [{"name": "shared", "tokens": {"name": "fixed", "tokens": 48}}]}},
            "would share prefixes, unless adapters are of tenants",
        ),
    ],
)
def test_adapters_that_cannot_be_are_refused(changes, message, tmp_path):
    with pytest.raises(InputError, match=message):
        Simulation.prepare(merged_workload(BASE | {"adapters": ADAPTERS}, changes), tmp_path)


def merged_workload(scenario, changes):
    """Changes laid over a scenario, those of its workload too."""
    workload = scenario["workload"] | changes.get("workload", {})
    return merged(scenario, changes) | {"workload": workload}
