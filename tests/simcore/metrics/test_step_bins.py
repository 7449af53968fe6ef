"""Rows of steps in bins of time: every second and every step is counted once, and what grows is seen to grow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.metrics.step_bins import StepBins, steps_done, time_passed

QUARTERS_S = np.linspace(0, 10, 5)
DURATIONS_S = st.integers(0, 10**9).map(lambda ns: ns / 1e9)


def rows_of(replica, start_s, end_s, first_step_s=None, last_step_s=None):
    start_s, end_s = np.asarray(start_s, dtype=float), np.asarray(end_s, dtype=float)
    even = end_s - start_s
    return {
        "replica": np.asarray(replica, dtype=np.int64),
        "start_s": start_s,
        "end_s": end_s,
        "first_step_s": even if first_step_s is None else np.asarray(first_step_s, dtype=float),
        "last_step_s": even if last_step_s is None else np.asarray(last_step_s, dtype=float),
    }


def test_means_over_time_by_hand():
    # Replica 0 runs one request throughout; replica 1 runs one for 0.5 s and three for 2 s of the second bin.
    steps = rows_of([0, 0, 1, 1], [0, 1, 2.5, 3], [1, 10, 3, 5])
    bins = StepBins(steps, 2, QUARTERS_S)
    running, waiting, preempted = np.array([1, 1, 1, 3]), np.array([0, 2, 0, 0]), np.array([0, 0, 0, 2])
    np.testing.assert_allclose(bins.mean(running), [[1, 1, 1, 1], [0, (0.5 + 6) / 2.5, 0, 0]])
    np.testing.assert_allclose(bins.mean(waiting)[0], [2 * 1.5 / 2.5, 2, 2, 2])
    np.testing.assert_allclose(bins.at_start(preempted), [0, 2, 0, 0])


def test_tokens_are_spread_over_their_row():
    steps = rows_of([0, 1], [1, 3], [10, 5])
    np.testing.assert_allclose(
        StepBins(steps, 2, QUARTERS_S).spread(np.array([9, 4])), [[1.5, 2.5, 2.5, 2.5], [0, 4, 0, 0]]
    )


def test_what_fills_evenly_is_seen_to_fill():
    bins = StepBins(rows_of([0], [0], [10]), 1, QUARTERS_S)
    np.testing.assert_allclose(bins.mean(np.array([0]), np.array([80])), [[10, 30, 50, 70]])


def test_steps_that_grow_longer_give_fewer_tokens_later():
    """Steps grow from 1 ms to 3 ms: of 5,000 in 10 s, n take n + n^2 / 5,000 ms."""
    bins = StepBins(rows_of([0], [0], [10], [1e-3], [3e-3]), 1, QUARTERS_S)
    upto = [(np.sqrt(1 + 4 * ms / 5000) - 1) / 2 * 5000 for ms in (0, 2500, 5000, 7500, 10_000)]
    np.testing.assert_allclose(bins.spread(np.array([5000]))[0], np.diff(upto))


@given(first_s=DURATIONS_S, last_s=DURATIONS_S, share=st.floats(0, 1))
def test_steps_and_time_are_each_others_inverse(first_s, last_s, share):
    first, last, shares = (np.array([value]) for value in (first_s, last_s, share))
    done = steps_done(first, last, time_passed(first, last, shares))
    assert done == pytest.approx(share, abs=1e-6)
    assert steps_done(first, last, np.array([0.0, 1.0])) == pytest.approx([0, 1], abs=1e-12)


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 2), st.floats(0, 50), st.floats(0, 50), st.integers(0, 9), DURATIONS_S, DURATIONS_S),
        max_size=20,
    ),
    bins=st.integers(1, 30),
)
def test_no_second_and_no_step_of_any_row_is_lost(rows, bins):
    replica, one_s, other_s, values, first_s, last_s = (
        (np.array(column) for column in zip(*rows, strict=True)) if rows else [np.zeros(0)] * 6
    )
    steps = rows_of(replica, np.minimum(one_s, other_s), np.maximum(one_s, other_s), first_s, last_s)
    found = StepBins(steps, 3, np.linspace(0, 50, bins + 1))
    held, spread = found.integral(values), found.spread(values)
    for index in range(3):
        mine = replica == index
        expected = np.sum(values[mine] * (steps["end_s"] - steps["start_s"])[mine])
        assert held[index].sum() == pytest.approx(expected, abs=1e-9)
        assert spread[index].sum() == pytest.approx(values[mine].sum(), abs=1e-9)
    assert (held >= -1e-9).all()
    assert (spread >= -1e-9).all()
