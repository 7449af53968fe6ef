"""The bootstrap within one pair of runs: figures of drawn requests, and how far their spread can be trusted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.comparison.resampling import BLOCKS, DRAWS, Mean, Percentile, Total, _drawn_counts, standard_errors

VALUES = st.lists(st.one_of(st.floats(-50, 50), st.just(float("nan"))), min_size=1, max_size=30)


@given(VALUES, st.data())
def test_figures_are_those_of_the_requests_as_often_as_they_were_drawn(values, data):
    counts = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(values), max_size=len(values))))
    values = np.array(values)
    drawn = np.repeat(values, counts)
    drawn = drawn[np.isfinite(drawn)]
    assert Total(np.nan_to_num(values)).of(counts) == pytest.approx(drawn.sum(), abs=1e-9)
    for figure, expected in (
        (Mean(values), np.mean),
        (Percentile(values, 99.0), lambda kept: np.percentile(kept, 99)),
        (Percentile(values, 50.0), lambda kept: np.percentile(kept, 50)),
    ):
        if len(drawn):
            assert figure.of(counts) == pytest.approx(expected(drawn), abs=1e-9)
        else:
            assert np.isnan(figure.of(counts))


@pytest.mark.parametrize("requests", [1, 7, 40, 997])
def test_every_draw_has_as_many_requests_as_the_run_and_all_have_the_same_chance(requests):
    draws = np.array(list(_drawn_counts(requests, seed=5)))
    assert draws.shape == (DRAWS, requests)
    assert (draws >= 0).all()
    assert (draws.sum(axis=1) == requests).all()
    # A request is drawn 1 time on average, with a spread below 1 per block; none may be left out at the ends.
    assert draws.mean(axis=0) == pytest.approx(np.ones(requests), abs=5 * np.sqrt(BLOCKS / DRAWS) / 2)


def autocorrelated(random, requests, memory):
    noise = random.normal(size=requests)
    values = np.empty(requests)
    level = 0.0
    for place, step in enumerate(noise):
        level = memory * level + step
        values[place] = level
    return values


def test_the_error_of_independent_differences_is_their_own():
    random = np.random.default_rng(6)
    base = random.exponential(size=4000)
    change = random.normal(0.1, 0.5, size=4000)
    (error,) = standard_errors([(Mean(base), Mean(base + change))], 4000, seed=0)
    assert error == pytest.approx(0.5 / np.sqrt(4000), rel=0.4)


def test_requests_that_hang_together_make_a_difference_less_sure():
    random = np.random.default_rng(7)
    change = autocorrelated(random, 8000, memory=0.98)
    (error,) = standard_errors([(Mean(np.zeros(8000)), Mean(change))], 8000, seed=0)
    true = 1 / (1 - 0.98) / np.sqrt(8000)
    assert error == pytest.approx(true, rel=0.5)
    assert error > 3 * change.std() / np.sqrt(8000)


def test_what_requests_have_in_common_drops_out():
    random = np.random.default_rng(8)
    shared, own, other = random.exponential(5, 2000), random.normal(size=2000), random.normal(size=2000)
    paired, apart = standard_errors(
        [(Mean(shared), Mean(shared + own)), (Mean(shared), Mean(shared[::-1] + other))], 2000, seed=1
    )
    assert paired < apart / 2


def test_equal_figures_have_no_error_and_few_requests_none_that_is_known():
    values = np.linspace(0, 1, 600)
    pairs = [(Mean(values), Mean(values)), (Percentile(values, 99.0), Percentile(values, 99.0))]
    assert standard_errors(pairs, 600, seed=0) == [0.0, 0.0]
    assert standard_errors([(Mean(values[:30]), Mean(values[:30]))], 30, seed=0) == [None]
    assert standard_errors([(Percentile(values[:400], 99.0), Percentile(values[:400], 99.0))], 400, 0) == [None]


def test_the_same_arguments_give_the_same_error():
    values = np.random.default_rng(9).exponential(size=500)
    pairs = [(Mean(values), Mean(values**2))]
    assert standard_errors(pairs, 500, seed=3) == standard_errors(pairs, 500, seed=3)
    assert standard_errors(pairs, 500, seed=3) != standard_errors(pairs, 500, seed=4)
