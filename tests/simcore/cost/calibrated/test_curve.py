"""Curves: monotone, alike for scalars and arrays, unbiased between knots."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.cost.calibrated import Curve

positive = st.floats(1e-7, 1.0)


@st.composite
def curves(draw):
    steps = draw(st.lists(st.integers(1, 1000), min_size=1, max_size=12))
    values = draw(st.lists(positive, min_size=len(steps), max_size=len(steps)))
    return Curve(np.cumsum(steps), values)


@given(curves(), st.lists(st.integers(0, 20_000), min_size=1, max_size=30))
def test_scalars_and_arrays_are_equal_to_the_bit(curve, points):
    assert curve.at_many(points).tolist() == [curve.at(point) for point in points]


@given(curves(), st.lists(st.integers(0, 20_000), min_size=2, max_size=30))
def test_never_falls_and_never_negative(curve, points):
    prices = curve.at_many(np.sort(points))
    assert (np.diff(prices) >= 0).all()
    assert (prices > 0).all()


def test_an_affine_latency_is_met_between_knots():
    knots = np.array([1.0, 64.0, 4096.0])
    curve = Curve(knots, 1e-5 + 1e-8 * knots)
    assert curve.at(1000) == pytest.approx(1e-5 + 1e-5)


def test_follows_its_base_between_knots_without_bias():
    def base(x):
        return 1e-5 + 1e-12 * x**2  # a floor and a square: a line between logarithms lies far above it

    knots = np.array([16.0, 256.0, 4096.0])
    curve = Curve.along(base, knots, np.log([1.1, 1.1, 1.1]))
    points = np.array([100.0, 1000.0, 2000.0, 3000.0])
    assert np.abs(curve.at_many(points) / (1.1 * base(points)) - 1).max() < 0.03
    assert (curve.first, curve.last) == (16.0, 4096.0)
    assert curve.at(8192) == pytest.approx(1.1 * base(8192), rel=0.05)
    assert curve.inside(4096)
    assert not curve.inside(4097)


@pytest.mark.parametrize(("x", "y"), [([], []), ([2, 1], [1, 1]), ([1, 2], [1, 0])])
def test_refuses_what_is_no_curve(x, y):
    with pytest.raises(ValueError, match="ascending"):
        Curve(x, y)
