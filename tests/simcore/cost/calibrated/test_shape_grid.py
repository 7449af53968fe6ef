"""Shapes between, beside and beyond measured ones."""

import numpy as np
import pytest

from simcore.cost.calibrated.shape_grid import ShapeGrid


def plane(first, second):
    return np.array([np.log(first) + 2 * np.log(second), 1.0])


@pytest.fixture
def grid():
    return ShapeGrid({(a, b): plane(a, b) for a in (1, 4, 16) for b in (2, 8) if (a, b) != (16, 8)})


def test_measured_shapes_are_exact(grid):
    found = grid.at(4, 8)
    assert found.measured
    assert found.values.tolist() == plane(4, 8).tolist()


def test_between_measured_shapes_logarithms_are_linear(grid):
    found = grid.at(2, 4)
    assert found.inside
    assert not found.measured
    assert found.values == pytest.approx(plane(2, 4))


@pytest.mark.parametrize("shape", [(8, 4), (64, 2), (1, 1)])
def test_elsewhere_the_nearest_stand_in_and_say_so(grid, shape):
    found = grid.at(*shape)
    assert not found.inside
    assert np.isfinite(found.values).all()
