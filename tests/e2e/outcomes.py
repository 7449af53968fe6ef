"""What holds of every run in which requests move, are lost or are sent again: each of them has one outcome."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simcore.build.cluster import SimulatedCluster, build_cluster
from simcore.build.simulation import Simulation
from simcore.core.result import Result
from simcore.recording.recorder import Recorder
from simcore.service.clock import Clock
from tests.e2e.scenarios import differences


def with_one_outcome_each(scenario: Mapping[str, Any], folder: Path) -> tuple[Simulation, SimulatedCluster, Result]:
    """Run a scenario, jumping and step by step; what was simulated, what is left of the cluster, and the result."""
    simulation = Simulation.prepare(scenario, folder)
    clock, recorder = Clock(), Recorder()
    cluster = build_cluster(clock, recorder, simulation.pools, simulation.workload, fast_forward=True, check=True)
    result = simulation.run_on(clock, recorder, cluster)
    requests = result.requests
    assert len(set(requests["request_id"].tolist())) == len(requests["request_id"])
    assert ((requests["reason"] != "") == (requests["state"] == "rejected")).all()
    if "end_s" not in scenario["measurement"]:
        assert len(requests["request_id"]) == scenario["workload"]["requests"]
        assert not (requests["state"] == "unfinished").any()
    assert not differences(result, simulation.run(fast_forward=False, check=True))
    return simulation, cluster, result
