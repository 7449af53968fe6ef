"""The page on scaling, made of a small day."""

import pytest

from servetwin.api import simulate
from tools.scaling_results import FLEETS, by_hour, scenario, serving_s, table


def test_a_row_for_each_fleet_and_for_every_other_hour():
    result = simulate(scenario(FLEETS["`queue`"], requests=1000))
    rows = list(table({"`queue`": result.summary}))
    assert rows[2].startswith(f"| `queue` | {result.summary['service']['mean_replicas']:.2f} | ")
    hours = list(by_hour(result))[2:]
    assert len(hours) == 12
    arrived = [float(row.split("|")[2]) * 7200 for row in hours]
    assert sum(arrived) == pytest.approx(result.summary["counts"]["arrived"], abs=12 * 0.005 * 7200)
    assert serving_s(result.fleet, 0.0, 86400.0) <= 86400.0 * 12
