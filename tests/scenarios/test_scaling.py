"""The scenarios of scaling show what the guide says of them."""

from pathlib import Path

from simcore.build.simulation import Simulation
from simcore.scenario import read_scenario
from simcore.scenario.reading import override

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
FIXED = "cluster={accelerator: h100-sxm, replicas: 6, routing: least-requests}"


def result_of(name, *changes):
    return Simulation.prepare(override(read_scenario(SCENARIOS / f"{name}.yaml"), changes), SCENARIOS).run()


def test_a_day_costs_less_on_replicas_that_come_and_go():
    scaled, fixed = result_of("autoscaled-day"), result_of("autoscaled-day", FIXED)
    assert scaled.summary["counts"]["rejected"] == 0
    assert scaled.summary["cost"]["usd"] < 0.7 * fixed.summary["cost"]["usd"]
    assert scaled.summary["throughput"]["slo_attainment"] > 0.99
    service = scaled.service
    busiest, quietest = service["replicas"][26:36].mean(), service["replicas"][2:8].mean()
    assert busiest > 3 * quietest


def test_a_spot_fleet_loses_instances_and_no_request():
    result = result_of("spot-fleet")
    assert result.summary["counts"]["finished"] == result.summary["counts"]["arrived"]
    assert result.summary["scaling"]["reclaimed"] > 2
    assert result.summary["pools"]["spot"]["usd_per_h"] < 5 * 1.33
    assert result.summary["throughput"]["slo_attainment"] > 0.99
