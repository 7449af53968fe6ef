"""Curves of collectives: monotone whatever the noise."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.fit.collective import CollectiveFit, steady
from calibrate.samples import SampleTable

SIZES = 2.0 ** np.arange(10, 30)


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=30))
def test_steady_is_sorted_and_keeps_sorted_input(values):
    found = steady(np.array(values))
    assert np.all(np.diff(found) >= 0)
    assert len(found) == len(values)
    assert np.array_equal(steady(np.sort(values)), np.sort(values))


def off(found: np.ndarray, values: np.ndarray) -> float:
    """What quantiles of three tenths make least."""
    return float(np.where(values > found, 0.3 * (values - found), 0.7 * (found - values)).sum())


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=4))
def test_no_other_sorted_sequence_is_nearer_than_the_steady_one(values):
    measured = np.array(values, dtype=np.float64)
    sequences = combinations_with_replacement(range(-3, 4), len(values))
    assert off(steady(measured), measured) <= min(off(np.array(other), measured) for other in sequences) + 1e-9


def test_a_message_that_was_held_up_moves_no_other():
    values = np.array([1.0, 1.0, 5.0, 1.0, 1.0, 2.0])
    assert steady(values).tolist() == [1.0, 1.0, 1.0, 1.0, 1.0, 2.0]


def test_fits_keep_what_was_measured():
    logs = np.log(8e-6 + SIZES / 2e11)
    count = len(SIZES)
    columns = {
        "operation": np.full(count, "all_gather"),
        "implementation": np.full(count, "nccl"),
        "nodes": np.ones(count, dtype=np.int64),
        "ranks_per_node": np.full(count, 4),
        "bytes": SIZES.astype(np.int64),
    }
    lines = np.arange(1, count + 1)
    samples = SampleTable("collective", "h100-sxm", "vllm", "0", columns, np.exp(logs), "x.csv", lines)
    fit = CollectiveFit()
    assert fit.predict(fit.fit(samples), samples) == pytest.approx(np.exp(logs))
