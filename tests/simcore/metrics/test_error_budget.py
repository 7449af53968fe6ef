"""How fast the error budget goes, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from simcore.metrics.error_budget import SPANS, regime, service_figures, service_table
from simcore.metrics.measured import MeasuredRun
from simcore.metrics.objectives import kept_all, missed_any
from simcore.scenario.sections import Objectives

FACTS = SimpleNamespace(pools=[SimpleNamespace(fleet=None, replicas=2)])


def measured(ttft_s, slo):
    """A run of 600 s in which a request arrives every second, each with such a TTFT; NaN is rejected."""
    count = 600
    arrival_s, ttft_s = np.arange(count, dtype=np.float64), np.asarray(ttft_s)
    rejected = np.isnan(ttft_s)
    requests = {
        "arrival_s": arrival_s,
        "ttft_s": ttft_s,
        "tpot_s": np.full(count, 0.01),
        "e2e_s": ttft_s + 0.3,
        "first_token_s": arrival_s + ttft_s,
        "end_s": arrival_s + np.where(rejected, 0.0, ttft_s + 0.3),
        "prompt_tokens": np.ones(count, dtype=np.int64),
        "state": np.where(rejected, "rejected", "finished"),
    }
    steps = {
        name: np.zeros(0, dtype=np.int64 if name in ("replica", "decoding_requests", "steps") else np.float64)
        for name in ("replica", "start_s", "end_s", "decoding_requests", "steps", "first_step_s", "last_step_s")
    }
    scenario = SimpleNamespace(slo=Objectives.model_validate(slo))
    good, bad = kept_all(requests, scenario), missed_any(requests, scenario, 600.0)
    return MeasuredRun(scenario, requests, steps, 0.0, 600.0, good, bad, 0, lambda start_s, length_s: 2.0 * length_s)


def test_the_budget_burns_as_requests_miss_the_objective():
    ttft_s = np.full(600, 0.5)
    ttft_s[30] = 3.0  # one of the ten of a span, where P90 lets one miss
    ttft_s[60:67] = 3.0  # seven of ten, of which one is rejected
    ttft_s[60] = np.nan
    run = measured(ttft_s, {"ttft_s": {"p90": 1.0}})
    table = service_table(FACTS, run)
    assert len(table["start_s"]) == SPANS
    burnt = {int(place): rate for place, rate in enumerate(table["burn_rate"].round(6)) if rate}
    assert burnt == {3: pytest.approx(1.0, rel=0.02), 6: pytest.approx(7.0, rel=0.02)}
    assert table["regime"][[3, 6, 9]].tolist() == ["green", "red", "green"]
    assert table["slo_attainment"][6] == pytest.approx(0.3, abs=0.01)
    assert table["requests"].sum() == 600
    assert table["replicas"].tolist() == [2.0] * SPANS
    assert table["usd"].sum() == pytest.approx(2.0 * 599)
    figures = service_figures(table, run, 2.0)
    assert figures["error_budget_spent"] == pytest.approx((8 / 600) / 0.1)
    assert figures["regime_shares"] == {"green": 59 / 60, "yellow": 0.0, "red": 1 / 60}


def test_of_two_objectives_the_one_that_burns_fastest_counts():
    ttft_s = np.full(600, 0.5)
    ttft_s[::10] = 1.5
    run = measured(ttft_s, {"ttft_s": {"p50": 1.0, "p99": 2.0}, "e2e_s": {"p95": 1.0}})
    figures = service_figures(service_table(FACTS, run), run, 2.0)
    assert figures["error_budget_spent"] == pytest.approx(0.1 / 0.05)


def test_without_objectives_nothing_burns():
    run = measured(np.full(600, 0.5), {})
    table = service_table(FACTS, run)
    assert np.isnan(table["burn_rate"]).all()
    assert np.isnan(table["slo_attainment"]).all()
    figures = service_figures(table, run, 2.0)
    assert figures["error_budget_spent"] is None
    assert figures["regime_shares"] == dict.fromkeys(("green", "yellow", "red"))


@pytest.mark.parametrize(
    ("burn_rate", "expected"),
    [(0.0, "green"), (1.0, "green"), (1.1, "yellow"), (6.0, "yellow"), (6.1, "red"), (float("nan"), "")],
)
def test_regimes(burn_rate, expected):
    assert regime(burn_rate) == expected
