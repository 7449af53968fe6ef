"""The maximal service difference, against its definition and by hand."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.metrics.fairness import fairness
from simcore.metrics.service_difference import backlogged_throughout, max_service_difference
from tests.simcore.metrics.test_fairness_figures import one_after_another, requests_of


def of_run(requests, end_s):
    none = np.zeros(len(requests["tenant"]), dtype=bool)
    return fairness(requests, end_s, none, none)["max_service_difference"]


def by_definition(service, waiting):
    found = [
        abs((service[f, end] - service[f, start]) - (service[g, end] - service[g, start]))
        for f, g in combinations(range(len(service)), 2)
        for start in range(waiting.shape[1])
        for end in range(start + 1, waiting.shape[1] + 1)
        if waiting[f, start:end].all() and waiting[g, start:end].all()
    ]
    return max(found, default=None)


@given(st.integers(2, 4), st.integers(1, 7), st.data())
def test_it_is_the_greatest_over_all_pairs_and_intervals(tenants, spans, data):
    gains = data.draw(st.lists(st.integers(0, 20), min_size=tenants * spans, max_size=tenants * spans))
    flags = data.draw(st.lists(st.booleans(), min_size=tenants * spans, max_size=tenants * spans))
    service = np.zeros((tenants, spans + 1))
    service[:, 1:] = np.cumsum(np.array(gains).reshape(tenants, spans), axis=1)
    waiting = np.array(flags).reshape(tenants, spans)
    assert max_service_difference(service, waiting) == by_definition(service, waiting)


def test_what_one_is_served_while_the_other_is_away_does_not_count():
    """Tenant "a" alone for 50 prompts, then both in turns: never further apart than one prompt."""
    alone = one_after_another("a" * 50)
    turns = one_after_another("ab" * 50)
    for name in ("arrival_s", "first_scheduled_s", "first_token_s", "end_s"):
        turns[name] = turns[name] + 60.0
    both = {name: np.concatenate((alone[name], turns[name])) for name in alone}
    assert 90.0 < of_run(both, 160.0) <= 102.0  # a prompt of 100 tokens, and a token of output that counts twice


def test_first_come_first_served_is_as_far_apart_as_it_serves_one_alone():
    assert of_run(one_after_another("a" * 50 + "b" * 50), 100.0) == pytest.approx(50 * 102.0, rel=0.03)


def test_without_two_that_wait_at_once_there_is_none():
    rows = [("a", 0.0, 5.0, 6.0, 7.0, 100, 5), ("b", 6.0, 9.0, 10.0, 11.0, 100, 5)]
    assert of_run(requests_of(*rows), 12.0) is None


def test_a_gap_between_two_times_ends_a_backlog():
    requests = requests_of(
        ("a", 1.0, 4.4, 5.0, 5.0, 10, 1),
        ("a", 4.6, 8.0, 9.0, 9.0, 10, 1),
        ("b", 2.0, np.nan, np.nan, np.nan, 10, 1),
        ("c", 1.0, 4.4, 5.0, 5.0, 10, 1),
        ("c", 4.4, 8.0, 9.0, 9.0, 10, 1),
    )
    rows_of = [np.flatnonzero(requests["tenant"] == name) for name in "abc"]
    found = backlogged_throughout(requests, rows_of, np.arange(0.0, 11.0)).astype(int)
    assert found[0].tolist() == [0, 1, 1, 1, 0, 1, 1, 1, 0, 0]
    assert found[1].tolist() == [0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    assert found[2].tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 0, 0]
