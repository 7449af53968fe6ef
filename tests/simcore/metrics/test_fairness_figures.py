"""Jain's index over what tenants were served while they competed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.metrics import fairness as fairness_module
from simcore.metrics.competition import relative_service, stretches
from simcore.metrics.fairness import fairness, jain_index
from simcore.metrics.tenant_service import SumsByTenant, TenantService


def requests_of(*rows):
    """Requests as (tenant, arrival, first scheduled, first token, end, prompt, output)."""
    names = ("tenant", "arrival_s", "first_scheduled_s", "first_token_s", "end_s", "prompt_tokens", "output_tokens")
    columns = {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    for name in names[1:5]:
        columns[name] = columns[name].astype(np.float64)
    ended = ~np.isnan(columns["end_s"])
    latencies = {name: np.full(len(rows), np.nan) for name in ("ttft_s", "tpot_s", "e2e_s")}
    return columns | latencies | {"state": np.where(ended, "finished", "unfinished")}


def index_of(requests, end_s):
    none = np.zeros(len(requests["tenant"]), dtype=bool)
    return fairness(requests, end_s, none, none)["jain_index"]


def one_after_another(order):
    """Prompts of 100 tokens, a second each, in this order of tenants; all arrive at the start."""
    rows = [(name, 0.0, second, second + 1.0, second + 1.0, 100, 1) for second, name in enumerate(order)]
    return requests_of(*rows)


def test_turns_are_even_and_one_tenant_first_is_not_though_all_finish():
    """Before the index was of totals, which are the same once everybody is served."""
    assert index_of(one_after_another("ab" * 50), 100.0) == pytest.approx(1.0, abs=0.005)
    assert index_of(one_after_another("a" * 50 + "b" * 50), 100.0) == pytest.approx(0.5, abs=0.005)
    # While both wait, "a" is served three times as much: (3 + 1)^2 / (2 (9 + 1)).
    assert index_of(one_after_another("aaab" * 20 + "b" * 40), 120.0) == pytest.approx(0.8, abs=0.01)


def test_who_never_waits_does_not_compete():
    served_at_once = [("c", float(second), float(second), second + 1.0, second + 1.0, 5000, 1) for second in range(90)]
    rows = [(name, 0.0, second, second + 1.0, second + 1.0, 100, 1) for second, name in enumerate("ab" * 50)]
    assert index_of(requests_of(*rows, *served_at_once), 100.0) == pytest.approx(1.0, abs=0.005)


def test_without_two_that_wait_at_once_there_is_no_index():
    rows = [("a", 0.0, 5.0, 6.0, 7.0, 100, 5), ("b", 6.0, 9.0, 10.0, 11.0, 100, 5)]
    assert index_of(requests_of(*rows), 12.0) is None


def waiting_at(requests, times_s):
    """By definition: a request waits from its arrival to its first step or its end."""
    names = np.unique(requests["tenant"])
    until_s = np.where(np.isnan(requests["first_scheduled_s"]), requests["end_s"], requests["first_scheduled_s"])
    until_s = np.where(np.isnan(until_s), np.inf, until_s)
    there = (requests["arrival_s"][:, None] <= times_s) & (times_s < until_s[:, None])
    return np.array([there[requests["tenant"] == name].any(axis=0) for name in names])


def served_until(requests, times_s, end_s):
    """By definition, a request at a time."""
    curves = {name: np.zeros(len(times_s)) for name in np.unique(requests["tenant"])}
    columns = ("tenant", "first_scheduled_s", "first_token_s", "end_s", "prompt_tokens", "output_tokens")
    for name, admitted_s, first_s, last_s, prompt, output in zip(*(requests[key] for key in columns), strict=True):
        last_s = end_s if np.isnan(last_s) else last_s
        curves[name] += prompt * (times_s >= admitted_s)
        if not np.isnan(first_s):
            grown = np.clip((times_s - first_s) / (last_s - first_s), 0, 1) if last_s > first_s else times_s >= first_s
            curves[name] += 2 * ((times_s >= first_s) + (output - 1) * grown)
    return np.array(list(curves.values()))


def by_definition(service, waiting):
    competing = waiting[:, 1:] & waiting[:, :-1]
    competing &= competing.sum(axis=0) >= 2
    gained = np.where(competing, np.diff(service, axis=1), 0.0)
    equal = gained.sum(axis=0) / np.maximum(competing.sum(axis=0), 1)
    return gained.sum(axis=1), (competing * equal).sum(axis=1)


@st.composite
def some_requests(draw):
    """A few requests of a few tenants, some at the same times, some that never start or never end."""
    rows = []
    for _ in range(draw(st.integers(2, 12))):
        steps = draw(st.lists(st.integers(0, 12).map(lambda quarters: quarters / 4), min_size=4, max_size=4))
        arrival, admitted, first, end = np.cumsum(steps)
        known = draw(st.integers(0, 3))
        times = [arrival, *(value if place < known else np.nan for place, value in enumerate((admitted, first, end)))]
        rows.append((draw(st.sampled_from("abc")), *times, draw(st.integers(1, 50)), draw(st.integers(1, 9))))
    return requests_of(*rows)


@given(some_requests(), st.integers(2, 30))
def test_service_and_fair_shares_are_what_they_are_defined_as(requests, points):
    times_s, end_s = np.linspace(0.0, 12.0, points), 12.0
    service = TenantService(requests, end_s)
    curves = served_until(requests, times_s, end_s)
    np.testing.assert_allclose(service.curves(np.arange(len(service.names)), times_s), curves, atol=1e-9)
    expected = by_definition(curves, waiting_at(requests, times_s))
    found = relative_service(service, stretches(requests, service.tenant, times_s), times_s)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_work_grows_with_requests_and_not_with_tenants(monkeypatch):
    """As many requests take about as long whether they are of ten tenants or each of one: counted, not timed."""
    asked = []
    until = SumsByTenant.until
    monkeypatch.setattr(SumsByTenant, "until", lambda self, *pairs: asked.append(len(pairs[0])) or until(self, *pairs))
    counts = []
    for tenants in (10, 20_000):
        asked.clear()
        names = [f"t{index % tenants}" for index in range(20_000)]
        index_of(one_after_another(names), 20_000.0)
        counts.append(sum(asked))
    curves_of_those_served_most = 3 * 200 * 2001
    assert counts[1] - curves_of_those_served_most < 30 * 20_000


def test_many_tenants_are_counted_and_the_busiest_listed(monkeypatch):
    monkeypatch.setattr(fairness_module, "MOST_LISTED", 2)
    requests = one_after_another("abbccc")
    none = np.zeros(6, dtype=bool)
    kept = np.array([False, True, True, True, True, False])
    found = fairness(requests, 10.0, kept, ~kept)
    assert (found["tenant_count"], list(found["tenants"])) == (3, ["b", "c"])
    assert found["least_slo_attainment"] == 0.0
    assert fairness(requests, 10.0, none, none)["least_slo_attainment"] is None


def test_the_index_of_equals_and_of_one_that_has_everything():
    assert jain_index(np.array([3.0, 3.0, 3.0])) == pytest.approx(1.0)
    assert jain_index(np.array([0.0, 0.0, 3.0])) == pytest.approx(1 / 3)
    assert jain_index(np.array([0.0, 0.0])) is None
