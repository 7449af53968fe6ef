from math import exp

import numpy as np
import pytest
from scipy.stats import kendalltau

from policies.prediction.class_mean import ClassMean
from policies.prediction.max_tokens import MaxTokens
from policies.prediction.moving_average import MovingAverage
from policies.prediction.noisy_oracle import NoisyOracle
from policies.prediction.oracle import Oracle
from policies.prediction.prompt_linear import PromptLinear
from policies.prediction.rank_noise import RankNoise
from tests.policies.views import FakeRequest, known


def test_the_oracle_knows_until_the_request_is_done():
    predictor = known(Oracle(), _3=50)
    assert predictor.output_tokens(FakeRequest(3)) == 50.0
    predictor.finished(FakeRequest(3), 50)
    with pytest.raises(KeyError):
        predictor.output_tokens(FakeRequest(3))


def test_the_limit():
    assert MaxTokens().output_tokens(FakeRequest(max_output_tokens=77)) == 77.0


def test_the_mean_of_the_last_outputs():
    predictor = MovingAverage(window=3, initial_tokens=9.0)
    estimates = []
    for tokens in (10, 20, 60, 100):
        estimates.append(predictor.output_tokens(FakeRequest()))
        predictor.finished(FakeRequest(), tokens)
    assert [*estimates, predictor.output_tokens(FakeRequest())] == [9.0, 10.0, 15.0, 30.0, 60.0]


def test_the_mean_of_a_class_of_tenant_level_and_prompt():
    predictor = ClassMean(initial_tokens=9.0)
    for tokens in (10, 30):
        predictor.finished(FakeRequest(prompt_tokens=64, tenant="a", priority=1), tokens)
    alike = [FakeRequest(prompt_tokens=prompt, tenant="a", priority=1) for prompt in (64, 127)]
    others = [
        FakeRequest(prompt_tokens=63, tenant="a", priority=1),
        FakeRequest(prompt_tokens=128, tenant="a", priority=1),
        FakeRequest(prompt_tokens=64, tenant="b", priority=1),
        FakeRequest(prompt_tokens=64, tenant="a", priority=0),
    ]
    assert [predictor.output_tokens(request) for request in alike] == [20.0, 20.0]
    assert [predictor.output_tokens(request) for request in others] == [9.0] * 4


def test_the_line_is_that_of_least_squares():
    random = np.random.default_rng(5)
    prompts = random.integers(1, 30000, 500)
    outputs = np.maximum(1, (300 + 0.02 * prompts + random.normal(0, 200, 500)).astype(int))
    predictor = PromptLinear()
    for prompt, output in zip(prompts.tolist(), outputs.tolist(), strict=True):
        predictor.finished(FakeRequest(prompt_tokens=prompt), output)
    slope, intercept = np.polyfit(prompts, outputs, 1)
    for prompt in (1, 1000, 50000):
        expected = intercept + slope * prompt
        assert predictor.output_tokens(FakeRequest(prompt_tokens=prompt)) == pytest.approx(expected, rel=1e-9)


def test_the_line_needs_two_different_prompts_and_no_estimate_is_below_one():
    predictor = PromptLinear(initial_tokens=9.0)
    for _ in range(3):
        assert predictor.output_tokens(FakeRequest(prompt_tokens=10)) == 9.0
        predictor.finished(FakeRequest(prompt_tokens=10), 40)
    predictor.finished(FakeRequest(prompt_tokens=20), 20)
    assert predictor.output_tokens(FakeRequest(prompt_tokens=15)) == pytest.approx(30.0)
    assert predictor.output_tokens(FakeRequest(prompt_tokens=1000)) == 1.0


def estimates(predictor, lengths):
    """The predictor's view of requests that arrive one after another."""
    found = []
    for number, tokens in enumerate(lengths.tolist()):
        predictor.reveal(FakeRequest(number), tokens)
        found.append(predictor.estimate(FakeRequest(number)))
    return np.array(found)


@pytest.mark.parametrize("relative_error", [0.0, 0.2, 0.5, 1.0])
def test_the_factor_of_the_noisy_oracle_has_its_median_at_one_and_the_spread_asked_for(relative_error):
    lengths = np.random.default_rng(1).integers(1, 1000, 40000)
    factors = estimates(NoisyOracle(relative_error, seed=4), lengths) / lengths
    # Three standard errors of a lognormal's median and of its coefficient of variation are below these.
    assert np.median(factors) == pytest.approx(1.0, abs=0.025 * relative_error + 1e-12)
    assert factors.std() / factors.mean() == pytest.approx(relative_error, rel=0.06, abs=1e-12)
    assert abs(np.corrcoef(factors, lengths)[0, 1]) < 0.02 if relative_error else np.ptp(factors) == 0.0


@pytest.mark.parametrize("tau", [-0.4, 0.0, 0.2, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("seed", [0, 7])
def test_the_order_under_rank_noise_agrees_with_the_true_one_as_asked_for(tau, seed):
    lengths = np.maximum(1, np.random.default_rng(seed).lognormal(5.0, 1.0, 8000).astype(int))
    found = kendalltau(estimates(RankNoise(tau, seed), lengths), lengths).statistic
    assert found == pytest.approx(tau, abs=0.03)


@pytest.mark.parametrize("tau", [-0.8, 0.3, 0.8, 0.95])
@pytest.mark.parametrize("draw", ["uniform", "exponential", "two peaks", "two lengths", "few long"])
def test_rank_noise_puts_as_many_pairs_in_order_as_asked_for_whatever_the_lengths(draw, tau):
    chance, few = np.random.default_rng(3), 6000
    lengths = {
        "uniform": chance.integers(1, 1000, few),
        "exponential": np.ceil(chance.exponential(200, few)).astype(int),
        "two peaks": np.where(chance.random(few) < 0.5, 10, 1000) + chance.integers(0, 10, few),
        "two lengths": np.where(chance.random(few) < 0.5, 10, 1000),
        "few long": np.where(chance.random(few) < 0.9, 10, 5000),
    }[draw]
    found = np.array(estimates(RankNoise(tau, seed=2), lengths))
    one, other = chance.integers(0, few, (2, 200_000))
    differ = lengths[one] != lengths[other]
    right = np.sign(found[one] - found[other]) == np.sign(lengths[one].astype(int) - lengths[other])
    assert right[differ].mean() == pytest.approx((1 + tau) / 2, abs=0.015)


@pytest.mark.parametrize("tau", [-0.99, -0.9, 0.9, 0.99])
def test_rank_noise_is_right_near_both_ends_in_short_runs_too(tau):
    found = []
    for seed in range(10):
        lengths = np.maximum(1, np.random.default_rng(seed).lognormal(5.0, 1.0, 300).astype(int))
        found.append(kendalltau(estimates(RankNoise(tau, seed), lengths), lengths).statistic)
    assert np.mean(found) == pytest.approx(tau, abs=0.02)


@pytest.mark.parametrize("tau", [-1.0, 1.0])
def test_at_its_ends_rank_noise_leaves_no_pair_in_another_order(tau):
    """Whatever the lengths, and however few: the estimates are as other policies see them, at least one token."""
    predictor = RankNoise(tau)
    for number, tokens in enumerate([9000, 1, 200, 7, 7, 200, 3, 30_000]):
        predictor.reveal(FakeRequest(number), tokens)
    seen = [predictor.output_tokens(FakeRequest(number)) for number in range(8)]
    order = np.argsort(seen, kind="stable").tolist()
    assert order == ([1, 6, 3, 4, 2, 5, 0, 7] if tau > 0 else [7, 0, 2, 5, 3, 4, 6, 1])


def test_rank_noise_keeps_estimates_on_the_scale_of_the_lengths():
    """What is not noise is drawn towards 256 tokens."""
    lengths = np.maximum(1, np.random.default_rng(2).lognormal(5.0, 1.0, 8000).astype(int))
    logarithms = np.log(estimates(RankNoise(0.3), lengths))
    rho = np.sin(np.pi * 0.15)
    assert logarithms.mean() == pytest.approx(np.log(256) + rho * (5.0 - np.log(256)), abs=0.05)
    assert logarithms.std() == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("kind", [NoisyOracle, RankNoise])
def test_mistakes_are_the_requests_own_and_of_the_seed(kind):
    lengths = np.random.default_rng(3).integers(1, 500, 100)
    assert estimates(kind(seed=1), lengths).tolist() == estimates(kind(seed=1), lengths).tolist()
    assert (estimates(kind(seed=1), lengths) != estimates(kind(seed=2), lengths)).sum() > 90


@pytest.mark.parametrize("kind", [NoisyOracle, RankNoise])
def test_a_request_that_is_done_is_forgotten(kind):
    predictor = known(kind(), _3=50)
    predictor.finished(FakeRequest(3), 50)
    with pytest.raises(KeyError):
        predictor.estimate(FakeRequest(3))


@pytest.mark.parametrize(
    ("generated", "total", "remaining"), [(0, 50.0, 50.0), (49, 50.0, 1.0), (50, 100.0, 50.0), (80, 160.0, 80.0)]
)
def test_a_corrected_estimate_doubles_what_has_outlived_it(generated, total, remaining):
    request = FakeRequest(0, generated_tokens=generated, max_output_tokens=50)
    assert MaxTokens(corrected=True).output_tokens(request) == total
    assert MaxTokens(corrected=True).remaining_tokens(request) == remaining
    assert MaxTokens().output_tokens(request) == 50.0
    assert MaxTokens().remaining_tokens(request) == max(50.0 - generated, 0.0)


def test_who_may_see_the_truth():
    """Only predictors that imitate errors: those that a service could use must not."""
    seeing = [kind for kind in (Oracle, NoisyOracle, RankNoise) if kind.sees_truth]
    blind = [kind for kind in (MaxTokens, MovingAverage, ClassMean, PromptLinear) if not kind.sees_truth]
    assert len(seeing) + len(blind) == 7
    assert [kind().learns for kind in (Oracle, NoisyOracle, RankNoise, MaxTokens)] == [False] * 4
    assert [kind().learns for kind in (MovingAverage, ClassMean, PromptLinear)] == [True] * 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MovingAverage(window=0), "window is 0, expected a whole number from 1 to"),
        (lambda: NoisyOracle(relative_error=-0.1), "relative_error is -0.1, expected a number from 0 to"),
        (lambda: RankNoise(kendall_tau=1.1), "kendall_tau is 1.1, expected a number from -1 to 1"),
        (lambda: RankNoise(kendall_tau=-exp(1)), "kendall_tau is -2.7"),
    ],
)
def test_parameters_out_of_range(make, message):
    with pytest.raises(ValueError, match=message):
        make()
