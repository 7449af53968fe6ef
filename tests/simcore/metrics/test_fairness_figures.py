"""Jain's index over what tenants were served while they competed."""

import numpy as np
import pytest

from simcore.metrics.fairness import backlogged, fairness, jain_index, relative_service


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


def test_a_request_waits_from_its_arrival_to_its_first_step_or_its_end():
    requests = requests_of(
        ("a", 1.0, 3.0, 4.0, 5.0, 10, 1),
        ("b", 2.0, np.nan, np.nan, 6.0, 10, 1),
        ("b", 8.0, np.nan, np.nan, np.nan, 10, 1),
    )
    times_s = np.arange(0.5, 10.0)
    assert backlogged(requests, times_s).astype(int).tolist() == [
        [0, 1, 1, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 1, 1, 1, 0, 0, 1, 1],
    ]


def test_fair_shares_are_equal_parts_of_what_those_who_compete_get():
    service = np.array([[0.0, 10, 20, 30], [0, 0, 30, 30], [0, 5, 10, 15]])
    waiting = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [0, 0, 1, 1]], dtype=bool)
    gained, fair = relative_service(service, waiting)
    # Between the first two times "a" and "b" compete for 10, then for 40, then "a" and "c" for 15.
    assert gained.tolist() == [30.0, 30.0, 5.0]
    assert fair.tolist() == [5 + 20 + 7.5, 25.0, 7.5]


def test_the_index_of_equals_and_of_one_that_has_everything():
    assert jain_index(np.array([3.0, 3.0, 3.0])) == pytest.approx(1.0)
    assert jain_index(np.array([0.0, 0.0, 3.0])) == pytest.approx(1 / 3)
    assert jain_index(np.array([0.0, 0.0])) is None
