import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.workload.describe import spearman
from simcore.workload.lengths import MAX_TOKENS, Fixed, Lognormal, Quantiles, Uniform
from simcore.workload.pairs import CorrelatedPairs, EmpiricalPairs, IndependentPairs
from simcore.workload.streams import random_stream

UNIFORMS = random_stream(3, "test").random(200_000)
SHARES = st.floats(0.0, 1.0)


def test_fixed():
    assert Fixed(7).quantile(np.array([0.0, 0.5])).tolist() == [7, 7]


def test_uniform_reaches_both_ends_equally_often():
    tokens, counts = np.unique(Uniform(3, 6).quantile(UNIFORMS), return_counts=True)
    assert tokens.tolist() == [3, 4, 5, 6]
    assert counts / len(UNIFORMS) == pytest.approx(0.25, abs=0.005)


def test_lognormal_moments():
    logarithms = np.log(Lognormal(1000.0, 0.5, 1, MAX_TOKENS).quantile(UNIFORMS))
    assert logarithms.mean() == pytest.approx(np.log(1000.0), abs=0.01)
    assert logarithms.std() == pytest.approx(0.5, rel=0.01)


def test_bounds_condition_the_lognormal_and_pile_nothing_up():
    low, high = 500, 1500
    bounded = Lognormal(1000.0, 0.8, low, high).quantile(UNIFORMS)
    free = Lognormal(1000.0, 0.8, 1, MAX_TOKENS).quantile(UNIFORMS)
    redrawn = free[(free >= low) & (free <= high)]
    assert bounded.min() == low
    assert bounded.max() == high
    percentiles = (1, 10, 50, 90, 99)
    assert np.percentile(bounded, percentiles) == pytest.approx(np.percentile(redrawn, percentiles), rel=0.02)
    assert np.mean(bounded == high) < 0.003


@given(SHARES, st.integers(1, 5000), st.integers(0, 5000), st.integers(0, 100_000), st.floats(1e-3, 10.0))
def test_lognormal_never_leaves_its_bounds(share, low, to_median, to_high, sigma):
    median, high = low + to_median, low + to_median + to_high
    (tokens,) = Lognormal(median, sigma, low, high).quantile(np.array([share]))
    assert low <= tokens <= high


@given(SHARES, st.integers(1, MAX_TOKENS), st.integers(1, MAX_TOKENS))
def test_uniform_never_leaves_its_bounds(share, one, other):
    low, high = min(one, other), max(one, other)
    assert low <= Uniform(low, high).quantile(np.array([share]))[0] <= high


def test_quantiles_are_met():
    tokens = Quantiles((0.0, 0.5, 0.99, 1.0), (7, 129, 601, 1000)).quantile(np.array([0.0, 0.25, 0.5, 0.99, 1.0]))
    assert tokens.tolist() == [7, 30, 129, 601, 1000]  # 30: the geometric mean of 7 and 129


@pytest.mark.parametrize("correlation", [-1.0, -0.4, 0.0, 0.7, 1.0])
def test_rank_correlation_is_met_and_the_distributions_are_kept(correlation):
    prompt, output = Lognormal(1000.0, 1.0, 1, MAX_TOKENS), Uniform(1, 100_000)
    prompts, outputs = CorrelatedPairs(prompt, output, correlation).start(5)(50_000)
    assert spearman(prompts, outputs) == pytest.approx(correlation, abs=0.02)
    assert np.median(prompts) == pytest.approx(1000, rel=0.03)
    assert outputs.mean() == pytest.approx(50_000, rel=0.02)


def test_prompts_do_not_depend_on_the_output_distribution():
    prompts, _ = IndependentPairs(Uniform(1, 1000), Fixed(1)).start(5)(1000)
    same, _ = IndependentPairs(Uniform(1, 1000), Uniform(1, 50)).start(5)(1000)
    assert prompts.tolist() == same.tolist()


def test_empirical_pairs_stay_paired():
    measured = EmpiricalPairs(np.arange(1, 101), np.arange(1, 101) * 10)
    prompts, outputs = measured.start(5)(10_000)
    assert (prompts * 10 == outputs).all()
    assert set(prompts) == set(range(1, 101))
