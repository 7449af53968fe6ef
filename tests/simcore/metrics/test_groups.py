"""Intervals of shares and of their differences, against published ones."""

import numpy as np
import pytest

from simcore.metrics.groups import newcombe, wilson


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"), [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611)]
)
def test_the_interval_of_a_share_is_wilsons(successes, trials, low, high):
    """Newcombe, Statistics in Medicine 17 (1998), 857, table I, method 3."""
    np.testing.assert_allclose(wilson(successes, trials), (low, high), atol=5e-5)


@pytest.mark.parametrize(
    ("one", "other", "low", "high"),
    [((48, 80), (56, 70), 0.0524, 0.3339), ((3, 10), (9, 10), 0.1705, 0.8090), ((0, 10), (10, 10), 0.6075, 1.0)],
)
def test_the_interval_of_a_difference_is_newcombes(one, other, low, high):
    """Newcombe, Statistics in Medicine 17 (1998), 873, table II, method 10."""
    np.testing.assert_allclose(newcombe(one, other), (low, high), atol=5e-5)
