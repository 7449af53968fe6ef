"""Knots that a table leaves out are on straight lines between those it keeps."""

import numpy as np
import pytest

from simcore.cost.calibrated.table import without_gaps

_ = np.nan


def test_gaps_are_filled_along_the_logarithm_of_knots_and_ends_are_not():
    filled = without_gaps(np.array([1.0, 2.0, 4.0, 8.0, 16.0]), np.array([[0.0, _, 1.0, 5.0, _], [_, 3.0, _, _, 6.0]]))
    assert filled == pytest.approx(np.array([[0.0, 0.5, 1.0, 5.0, _], [_, 3.0, 4.0, 5.0, 6.0]]), nan_ok=True)


def test_a_row_of_one_value_stays():
    row = np.array([[_, 2.0, _]])
    assert without_gaps(np.array([1.0, 2.0, 4.0]), row) == pytest.approx(row, nan_ok=True)
