import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.figures.time_bins import StepBins, coarse_edges, events_per_s, fine_edges, run_end_s

QUARTERS_S = np.linspace(0, 10, 5)


def test_means_over_time_by_hand(two_replicas):
    steps = two_replicas.steps
    bins = StepBins(steps, 2, QUARTERS_S)
    # Replica 0 runs one request throughout; replica 1 runs one for 0.5 s and three for 2 s of the second bin.
    np.testing.assert_allclose(bins.mean(steps["running_requests"]), [[1, 1, 1, 1], [0, (0.5 + 6) / 2.5, 0, 0]])
    # Two requests wait on replica 0 from 1 s on.
    np.testing.assert_allclose(bins.mean(steps["waiting_requests"])[0], [2 * 1.5 / 2.5, 2, 2, 2])
    np.testing.assert_allclose(bins.at_start(steps["preempted_requests"]), [0, 2, 0, 0])


def test_tokens_are_spread_over_their_row(two_replicas):
    steps = two_replicas.steps
    tokens_per_s = StepBins(steps, 2, QUARTERS_S).spread_per_s(steps["decoding_requests"] * steps["steps"])
    np.testing.assert_allclose(tokens_per_s, [1.5 / 2.5, (2.5 + 4) / 2.5, 1, 1])


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.floats(0, 50), st.floats(0, 50), st.integers(0, 9)), max_size=20),
    bins=st.integers(1, 30),
)
def test_no_second_of_any_row_is_lost(rows, bins):
    replica, one_s, other_s, values = (
        (np.array(column) for column in zip(*rows, strict=True)) if rows else [np.zeros(0)] * 4
    )
    steps = {"replica": replica.astype(int), "start_s": np.minimum(one_s, other_s), "end_s": np.maximum(one_s, other_s)}
    held = StepBins(steps, 3, np.linspace(0, 50, bins + 1)).integral(values)
    for index in range(3):
        mine = replica == index
        expected = np.sum(values[mine] * (steps["end_s"] - steps["start_s"])[mine])
        assert held[index].sum() == pytest.approx(expected, abs=1e-9)
    assert (held >= -1e-9).all()


def test_events_that_never_came_are_not_counted():
    rates = events_per_s(np.array([0.5, 2.5, 2.6, np.nan]), np.array([0.0, 2.0, 4.0]))
    assert rates.tolist() == [0.5, 1.0]


def test_the_run_ends_with_the_last_thing_that_happens(two_replicas, make_result):
    assert run_end_s(two_replicas) == 10.0
    assert run_end_s(make_result([], [])) == 0.0
    assert run_end_s(make_result([{"arrival_s": 12.0, "state": "unfinished"}], [])) == 12.0


def test_bins_are_few_and_cover_the_run():
    for edges_s in (fine_edges(7.0), coarse_edges(7.0, 3), coarse_edges(7.0, 10**6)):
        assert (edges_s[0], edges_s[-1]) == (0.0, 7.0)
        assert 20 < len(edges_s) < 500
