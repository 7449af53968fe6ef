"""Intervals and p-values: against textbook results, and by how often they are right."""

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from experiments.comparison.significance import (
    fewest_pairs,
    holm,
    least_p_value,
    mean_difference,
    permutation_p_value,
    student,
)


@pytest.mark.parametrize("seeds", [2, 3, 6])
@pytest.mark.parametrize("comparisons", [1, 4])
def test_all_intervals_cover_their_true_differences_together_in_95_percent(seeds, comparisons):
    random = np.random.default_rng(1)
    common = random.normal(size=(4000, 1, seeds))  # of the baseline, which all comparisons share
    drawn = 0.7 + common + random.normal(0.0, 2.0, size=(4000, comparisons, seeds))
    centre, error = drawn.mean(axis=2), drawn.std(axis=2, ddof=1) / np.sqrt(seeds)
    half = error * (student(0.0, 1.0, seeds, comparisons).high or 0.0)
    covered = (np.abs(centre - 0.7) <= half).all(axis=1).mean()
    assert 0.94 <= covered <= (0.96 if comparisons == 1 else 0.98)
    estimate = mean_difference(drawn[0, 0], comparisons)
    assert (estimate.low, estimate.high) == pytest.approx((centre[0, 0] - half[0, 0], centre[0, 0] + half[0, 0]))


def test_the_interval_is_the_textbooks():
    differences = np.array([0.3, 0.1, 0.4, -0.1])
    by_scipy = stats.ttest_1samp(differences, 0)
    for comparisons in (1, 3):
        expected = by_scipy.confidence_interval(1 - 0.05 / comparisons)
        estimate = mean_difference(differences, comparisons)
        assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high))


def test_without_a_difference_p_is_below_5_percent_in_no_more_than_5_percent_of_comparisons():
    random = np.random.default_rng(2)
    p_values = np.array([permutation_p_value(row) for row in random.standard_t(2, size=(2000, 7))])
    assert 0.03 <= (p_values < 0.05).mean() <= 0.06


def test_a_clear_difference_is_found_with_enough_seeds_and_never_with_fewer():
    random = np.random.default_rng(3)
    for seeds in range(2, 12):
        estimate = mean_difference(random.normal(10.0, 1.0, size=seeds))
        assert estimate.p_value == pytest.approx(least_p_value(seeds)) == pytest.approx(2 / 2**seeds)
        assert (estimate.p_value < 0.05) == (seeds >= fewest_pairs(1))


def test_the_same_differences_give_the_same_interval_whatever_their_unit():
    differences = np.array([0.2, -0.1, 0.4, 0.3, 0.5, 0.1])
    one, other = mean_difference(differences), mean_difference(1e-6 * differences)
    assert (other.low, other.high, other.p_value) == pytest.approx((1e-6 * one.low, 1e-6 * one.high, one.p_value))


@pytest.mark.parametrize(("comparisons", "seeds"), [(1, 6), (2, 7), (3, 7), (4, 8), (6, 8), (7, 9), (12, 9), (25, 10)])
def test_the_fewest_seeds_that_can_tell(comparisons, seeds):
    assert fewest_pairs(comparisons) == seeds
    assert comparisons * least_p_value(seeds) < 0.05 <= comparisons * least_p_value(seeds - 1)


def test_one_pair_has_a_difference_and_nothing_more():
    estimate = mean_difference(np.array([2.5]))
    assert (estimate.difference, estimate.low, estimate.high, estimate.p_value) == (2.5, None, None, None)


def test_equal_pairs_differ_by_nothing_for_sure():
    estimate = mean_difference(np.zeros(5))
    assert (estimate.difference, estimate.low, estimate.high, estimate.p_value) == (0, 0, 0, 1)


def test_a_constant_difference_is_no_surer_than_its_signs_allow():
    differences = np.full(5, 0.1)
    estimate = mean_difference(differences)
    assert (estimate.low, estimate.high) == pytest.approx((0.1, 0.1))
    assert estimate.p_value == 2 / 2**5
    assert student(3.0, 0.0, 5).low == 3.0


@example([312.0, 687.0, 687.0, -1000.0, -805.0, -866.0, 1000.0])  # what is left of them is small
@given(st.lists(st.floats(-1e3, 1e3).filter(lambda value: value == 0 or abs(value) > 1e-3), min_size=2, max_size=7))
def test_sign_flips_are_counted_exactly(differences):
    sums = [
        sum(sign * value for sign, value in zip(signs, differences, strict=True))
        for signs in product((1, -1), repeat=len(differences))
    ]
    as_far = [abs(total) >= abs(sum(differences)) - 1e-9 for total in sums]
    assert permutation_p_value(np.array(differences)) == pytest.approx(np.mean(as_far))


def test_of_too_many_ways_some_are_drawn_and_the_same_each_time():
    assert permutation_p_value(np.ones(20)) == pytest.approx(least_p_value(20))
    differences = np.random.default_rng(5).normal(0.5, 1.0, size=18)
    assert permutation_p_value(differences) == permutation_p_value(differences)
    assert permutation_p_value(differences) == pytest.approx(stats.ttest_1samp(differences, 0).pvalue, abs=0.02)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.02]) == [0.02]
    assert holm([0.7, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_lies_between_the_p_value_and_bonferroni(p_values):
    adjusted = holm(p_values)
    for p_value, new in zip(p_values, adjusted, strict=True):
        assert p_value <= new <= min(1.0, len(p_values) * p_value)
    order = np.argsort(p_values, kind="stable")
    assert all(np.diff(np.array(adjusted)[order]) >= 0)


def test_holm_errs_in_any_of_several_comparisons_no_more_often_than_stated():
    random = np.random.default_rng(4)
    p_values = random.uniform(size=(3000, 4))
    assert np.mean([min(holm(list(row))) < 0.05 for row in p_values]) <= 0.06
    assert (p_values.min(axis=1) < 0.05).mean() > 0.15
