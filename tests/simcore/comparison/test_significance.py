"""Intervals and p-values: against textbook results, and by how often they are right."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from simcore.comparison.significance import holm, mean_difference, sign_flip_p_value, student


def test_the_paired_interval_covers_the_true_difference_as_often_as_it_says():
    random = np.random.default_rng(1)
    found = [mean_difference(row) for row in random.normal(0.7, 2.0, size=(4000, 5))]
    covered = np.mean([estimate.low <= 0.7 <= estimate.high for estimate in found])
    assert covered == pytest.approx(0.95, abs=0.01)


def test_without_a_difference_p_is_below_5_percent_in_5_percent_of_comparisons():
    random = np.random.default_rng(2)
    p_values = np.array([mean_difference(row).p_value for row in random.normal(0, 3.0, size=(4000, 5))])
    assert (p_values < 0.05).mean() == pytest.approx(0.05, abs=0.01)


def test_it_is_the_paired_t_test():
    random = np.random.default_rng(3)
    one, other = random.normal(size=8), random.normal(0.5, size=8)
    expected = stats.ttest_rel(other, one)
    estimate = mean_difference(other - one)
    assert estimate.p_value == pytest.approx(expected.pvalue)
    assert (estimate.low, estimate.high) == pytest.approx(tuple(expected.confidence_interval()))


def test_one_pair_has_a_difference_and_nothing_more():
    estimate = mean_difference(np.array([2.5]))
    assert (estimate.difference, estimate.low, estimate.high, estimate.p_value) == (2.5, None, None, None)


def test_equal_pairs_differ_by_nothing_for_sure():
    estimate = mean_difference(np.zeros(5))
    assert (estimate.difference, estimate.low, estimate.high, estimate.p_value) == (0, 0, 0, 1)


def test_a_constant_difference_is_no_surer_than_its_signs_allow():
    differences = np.full(5, 0.1)
    assert mean_difference(differences).p_value == 2 / 2**5 == sign_flip_p_value(differences)
    assert student(3.0, 0.0, 5).low == 3.0


@given(st.lists(st.floats(-1e3, 1e3).filter(lambda value: value == 0 or abs(value) > 1e-3), min_size=1, max_size=7))
def test_sign_flips_are_counted_exactly(differences):
    sums = [
        sum(sign * value for sign, value in zip(signs, differences, strict=True))
        for signs in product((1, -1), repeat=len(differences))
    ]
    as_far = [abs(total) >= abs(sum(differences)) - 1e-9 for total in sums]
    assert sign_flip_p_value(np.array(differences)) == pytest.approx(np.mean(as_far))


def test_sign_flips_are_left_out_where_they_are_too_many():
    assert sign_flip_p_value(np.ones(20)) == 2 / 2**20
    assert sign_flip_p_value(np.ones(21)) is None


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
