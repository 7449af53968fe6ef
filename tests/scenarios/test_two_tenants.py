"""The scenario of two tenants carries the load of the quickstart, and first come, first served is unfair to one."""

from pathlib import Path

import numpy as np
import pytest

from simcore.build.simulation import Simulation
from simcore.scenario import read_scenario

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"


@pytest.fixture(scope="module")
def simulation():
    return Simulation.prepare(read_scenario(SCENARIOS / "two-tenants.yaml"), SCENARIOS)


def test_it_is_the_load_of_the_quickstart(simulation):
    quickstart = Simulation.prepare(read_scenario(SCENARIOS / "quickstart.yaml"), SCENARIOS)
    ours, theirs = simulation.workload.requests, quickstart.workload.requests
    assert len(ours) == len(theirs) == 5000
    assert ours.tenants == ("heavy", "light")
    assert np.mean(ours.tenant == 0) == 0.9
    assert ours.arrival_ns[-1] == pytest.approx(theirs.arrival_ns[-1], rel=0.05)
    # Lengths are drawn from the same file, so their means differ by no more than five standard errors.
    for name in ("prompt_tokens", "output_tokens"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert one.mean() == pytest.approx(other.mean(), abs=5 * other.std() / np.sqrt(5000))
    assert simulation.spec.name == quickstart.spec.name
    assert simulation.total_blocks == quickstart.total_blocks


def test_the_light_tenant_waits_behind_bursts(simulation):
    result = simulation.run()
    assert result.summary["counts"]["finished"] == 5000
    light = simulation.workload.requests.tenant == 1
    light_ttft_s = result.requests["ttft_s"][light]
    assert np.median(light_ttft_s) < 0.1
    assert np.percentile(light_ttft_s, 90) > 1.0
