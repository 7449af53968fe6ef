"""Load in steps, and where the limits cease to hold."""

from pathlib import Path

import pytest

from dashboard.what_if.documents import RESULTS, tables_in
from dashboard.what_if.load_sweep import largest_rates, rates_between, sweep_items
from dashboard.what_if.policy_plans import KINDS, names_of, policy_plan
from dashboard.what_if.setups import default_pair, value_at, with_value
from dashboard.what_if.tasks import Point, sweep
from simcore.build.simulation import Simulation
from simcore.core.errors import InputError

DOCUMENT = with_value(default_pair().document("A"), "workload.requests", 40)


def test_rates_rise_by_one_factor():
    assert rates_between(1, 8, 4) == [1, 2, 4, 8]


@pytest.mark.parametrize("wrong", [(0, 8, 4), (8, 1, 4), (1, 8, 1), (1, 8, 1000)])
def test_other_rates_are_refused(wrong):
    with pytest.raises(InputError):
        rates_between(*wrong)


def test_every_point_is_a_run_of_the_command_line():
    items = sweep_items(DOCUMENT, [5.0, 20.0], [1, 2], 1)
    assert [(rate, gpus) for rate, gpus, _ in items] == [(5.0, 1), (20.0, 1), (5.0, 2), (20.0, 2)]
    assert value_at(items[3][2], "cluster.replicas") == 2
    point = sweep(items)[3]
    alone = Simulation.prepare(items[3][2], Path()).run().summary
    assert point.summary["metrics"] == alone["metrics"]
    assert point.summary["throughput"] == alone["throughput"]


def test_the_largest_rate_is_the_last_before_the_first_that_fails():
    def point(rate, gpus, met):
        return Point(rate, gpus, {"slo": {"ttft_s.p99": {"met": met}}})

    points = [point(4, 1, True), point(1, 1, True), point(2, 1, False), point(1, 2, False), point(2, 2, True)]
    assert largest_rates(points) == {1: 1, 2: None}
    assert largest_rates([Point(1, 1, {"slo": None})]) == {1: None}


@pytest.mark.parametrize("kind", KINDS)
def test_there_are_policies_of_every_kind(kind):
    assert len(names_of(kind)) >= 2


def test_policies_are_planned_as_compare_does():
    plan = policy_plan(DOCUMENT, Path(), "Ordering", ["fcfs", "sjf"], 2)
    assert (plan.variants, plan.baseline, len(plan.runs)) == (("fcfs", "sjf"), "fcfs", 4)
    with pytest.raises(InputError, match="at least 2"):
        policy_plan(DOCUMENT, Path(), "Ordering", ["fcfs"], 2)
    with pytest.raises(InputError, match="servetwin compare takes more"):
        policy_plan(DOCUMENT, Path(), "Ordering", ["fcfs", "sjf"], 1000)


def test_the_committed_results_are_read():
    tables = tables_in(RESULTS / "fidelity.md")
    assert any("TTFT median" in table.columns for table in tables)
    for table in tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert len(table.by_column()) == len(table.columns)
    assert tables_in(RESULTS / "no-such.md") == []


def test_tables_of_a_document(tmp_path):
    (tmp_path / "a.md").write_text(
        "# One\n\n| a | b |\n|---|--:|\n| `x` | [y](z) |\n| 1 |\n\ntext | no\n## Two\n| a |\n|---|\n"
    )
    first, second = tables_in(tmp_path / "a.md")
    assert (first.title, first.columns, first.rows) == ("One", ("a", "b"), (("x", "y"), ("1", "")))
    assert (second.title, second.rows) == ("Two", ())
