import numpy as np
import pytest
from scipy.stats import kstest

from policies.chance import normal, uniform


@pytest.mark.parametrize("seed", [0, 1, 123456789])
@pytest.mark.parametrize("stream", [0, 1])
def test_numbers_are_uniform(seed, stream):
    drawn = np.array([uniform(seed, number, stream) for number in range(20000)])
    assert kstest(drawn, "uniform").pvalue > 0.001
    assert 0.0 < drawn.min() < drawn.max() < 1.0


@pytest.mark.parametrize("seed", [0, 1, 123456789])
def test_numbers_are_normal(seed):
    assert kstest([normal(seed, number) for number in range(20000)], "norm").pvalue > 0.001


def test_neighbours_have_nothing_in_common():
    """Neither successive requests, nor the same ones under another seed or in another stream."""
    base = np.array([uniform(5, number) for number in range(20000)])
    others = (
        [uniform(5, number + 1) for number in range(20000)],
        [uniform(6, number) for number in range(20000)],
        [uniform(5, number, 1) for number in range(20000)],
    )
    for other in others:
        assert abs(np.corrcoef(base, other)[0, 1]) < 0.025


def test_the_same_arguments_give_the_same_number_on_every_machine():
    assert uniform(0, 0) == 0.6524484863740323
    assert normal(3, 7) == normal(3, 7)
    assert (
        len({uniform(seed, number, stream) for seed in range(20) for number in range(20) for stream in (0, 1)}) == 800
    )
