"""Intervals of shares contain the true share as often as they promise."""

import numpy as np
import pytest

from experiments.planner.evidence import Share


def test_independent_requests_are_worth_themselves():
    kept = np.random.default_rng(0).random(20_000) > 0.01
    share = Share.of(kept)
    assert share.value == pytest.approx(0.99, abs=0.003)
    assert share.effective > 10_000


def test_requests_that_miss_together_are_worth_fewer():
    kept = np.ones(20_000, dtype=bool)
    kept[5_000:5_200] = False
    assert Share.of(kept).effective < 2_000


@pytest.mark.parametrize("together", [1, 40])
def test_the_interval_covers_the_true_share(together):
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(300):
        kept = np.repeat(random.random(8_000 // together) > 0.02, together)
        low, high = Share.of(kept).interval(1.96)
        covered += low <= 0.98 <= high
    assert covered >= 270


def test_without_a_miss_the_bound_falls_with_the_number_of_requests():
    low_of_few, low_of_many = (Share.of(np.ones(count, dtype=bool)).interval(1.645)[0] for count in (100, 10_000))
    assert low_of_few < 0.99 < low_of_many


def test_no_requests_say_nothing():
    share = Share.of(np.ones(0, dtype=bool))
    assert (share.value, share.interval(1.96)) == (None, (0.0, 1.0))
