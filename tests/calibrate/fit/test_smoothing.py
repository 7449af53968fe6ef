"""Smoothing fills holes; isotonic values never fall."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.fit.smooth import isotonic, smooth


def test_holes_are_filled_from_their_neighbours():
    axes = [np.linspace(0, 2, 9), np.linspace(0, 1, 7)]
    truth = 0.3 * axes[0][:, None] + 0.2 * axes[1][None, :]
    holed = truth.copy()
    holed[4, 3] = holed[0, 2] = np.nan
    filled = smooth(axes, holed)
    assert filled == pytest.approx(truth, abs=0.03)


def test_a_jump_that_all_rows_share_is_expected_in_a_hole_too():
    axes = [np.arange(6.0), np.arange(12.0)]
    values = np.where(axes[0][:, None] >= 3, 0.5, 0.0) + 0.0 * axes[1]
    holed = values.copy()
    holed[3:, 5] = np.nan
    assert smooth(axes, holed)[3:, 5] == pytest.approx(0.5, abs=0.02)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30))
def test_isotonic_is_sorted_keeps_the_sum_and_sorted_input(values):
    found = isotonic(np.array(values))
    assert (np.diff(found) >= 0).all()
    assert found.sum() == pytest.approx(sum(values), abs=1e-9)
    assert isotonic(np.sort(values)) == pytest.approx(np.sort(values))
