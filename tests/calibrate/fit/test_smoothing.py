"""Smoothing fills holes, also by what kernels see of two axes together; isotonic values never fall."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.fit.grids import reached
from calibrate.fit.smooth import interrupted, isotonic, smooth
from calibrate.fit.steps import steps_of
from simcore.core.errors import ServetwinError


def test_holes_are_filled_from_their_neighbours():
    axes = [np.linspace(0, 2, 9), np.linspace(0, 1, 7)]
    truth = 0.3 * axes[0][:, None] + 0.2 * axes[1][None, :]
    holed = truth.copy()
    holed[4, 3] = holed[0, 2] = np.nan
    filled = smooth(axes, holed)
    assert filled == pytest.approx(truth, abs=0.03)


def test_a_surface_that_is_not_found_is_no_surface(monkeypatch):
    monkeypatch.setattr("calibrate.fit.smooth.cg", lambda matrix, right, x0, **limits: (x0, limits["maxiter"]))
    with pytest.raises(ServetwinError, match="no smooth surface through 12 samples in 4,000 iterations"):
        smooth([np.arange(12.0)], np.arange(12.0))


def test_a_jump_that_all_rows_share_is_expected_in_a_hole_too():
    axes = [np.arange(6.0), np.arange(12.0)]
    values = np.where(axes[0][:, None] >= 3, 0.5, 0.0) + 0.0 * axes[1]
    holed = values.copy()
    holed[3:, 5] = np.nan
    assert smooth(axes, holed)[3:, 5] == pytest.approx(0.5, abs=0.02)


def test_where_a_product_counts_a_hole_is_like_its_equals():
    axes = [np.log(2.0 ** np.arange(6)), np.log(2.0 ** np.arange(7)), np.arange(3.0)]
    by_product = np.random.default_rng(0).uniform(0, 1, 12)
    truth = by_product[np.add.outer(np.arange(6), np.arange(7))][:, :, None] + 0.0 * axes[2]
    holed = truth.copy()
    holed[2, 3] = holed[4, 4, 1] = np.nan
    apart = np.abs(smooth(axes, holed) - truth).max()
    assert smooth(axes, holed, [(0, 1)]) == pytest.approx(truth, abs=0.03)
    assert apart > 0.1


def test_steps_of_the_same_product_link_each_place_to_the_next():
    first, second = [1, 2, 3, 4], [1, 2, 4]
    axes = [np.log(np.array(first)), np.log(np.array(second)), np.arange(5.0)]
    *_, linked = (steps for steps in steps_of(axes, np.zeros((4, 3, 5)), [(0, 1)]) if len(steps.plus) == 1)
    named = [
        [(first[place // 15], second[place // 5 % 3]) for place in end] for end in (linked.plus[0], linked.minus[0])
    ]
    assert set(zip(*named, strict=True)) == {((2, 1), (1, 2)), ((2, 2), (1, 4)), ((4, 1), (2, 2)), ((4, 2), (2, 4))}


def test_what_is_above_all_its_neighbours_was_interrupted_but_not_a_row_of_slow_kernels():
    axes = [np.arange(9.0), np.arange(8.0)]
    values = 0.05 * axes[0][:, None] + 0.02 * axes[1]
    values[4] += 0.8
    values[2, 3] += 0.5
    found = interrupted(values.ravel(), list(steps_of(axes, values, []))).reshape(values.shape)
    assert np.argwhere(found).tolist() == [[2, 3]]
    assert smooth(axes, values)[2, 3] == pytest.approx(0.16, abs=0.05)
    assert smooth(axes, values)[4] == pytest.approx(values[4], abs=0.01)


def test_tables_reach_as_far_as_a_shape_or_its_neighbour_was_measured():
    measured = np.zeros((1, 1, 4, 3, 4), dtype=bool)
    measured[0, 0, 0] = True
    measured[0, 0, 1, :2, :3] = True
    measured[0, 0, 2, 0, 1] = True
    found = reached(measured)[0, 0]
    assert found[:2].all()
    assert found[2].tolist() == [[True] * 3 + [False], [True] * 3 + [False], [False] * 4]
    assert not found[3].any()


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30))
def test_isotonic_is_sorted_keeps_the_sum_and_sorted_input(values):
    found = isotonic(np.array(values))
    assert (np.diff(found) >= 0).all()
    assert found.sum() == pytest.approx(sum(values), abs=1e-9)
    assert isotonic(np.sort(values)) == pytest.approx(np.sort(values))
