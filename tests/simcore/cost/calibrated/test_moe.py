"""Experts of models that were not measured."""

import numpy as np
import pytest

from simcore.cost.calibrated.base import Rates, moe_work
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.calibrated.moe import MOE_KEYS, MoeTable
from simcore.cost.calibrated.table import KernelTable

TOKENS = np.array([1.0, 16.0, 256.0])
RATES = Rates(1e-5, 1e15, 1e12)
ERRORS = ErrorQuantiles(1, 0.0, 0.0, 0.0, (0.0,) * 7)


def table(ratios):
    """Models that take so many times their flat rates."""
    rows = [("bf16", "balanced", *shape, 1, 1) for shape in ratios]
    latency_s = np.array([ratio * base_s(shape, TOKENS) for shape, ratio in ratios.items()])
    return MoeTable(KernelTable(MOE_KEYS, rows, TOKENS, latency_s), {"bf16": RATES}, {"bf16": ERRORS})


def base_s(shape, tokens):
    return RATES.seconds(*moe_work("bf16", tokens, *shape, 1, 1))


def ratio_at(price, shape, tokens):
    return price.seconds(tokens) / base_s(shape, np.array([float(tokens)]))[0]


def test_a_model_between_two_takes_the_geometric_mean_of_their_ratios():
    measured = table({(1024, 1024, 2, 8): 2.0, (4096, 1024, 2, 8): 8.0})
    between = (2048, 1024, 2, 8)
    price = measured.price("bf16", *between)
    for tokens in (1, 16, 256):
        assert ratio_at(price, between, tokens) == pytest.approx(4.0)
        assert not price.inside(tokens)


def test_the_nearer_model_counts_by_the_inverse_square_of_its_distance():
    measured = table({(1024, 1024, 2, 8): 1.0, (8192, 1024, 2, 8): 16.0})
    near = (2048, 1024, 2, 8)
    assert ratio_at(measured.price("bf16", *near), near, 16) == pytest.approx(16.0 ** (1 / 5))


def test_a_measured_model_is_read_as_it_is():
    own = (1024, 1024, 2, 8)
    price = table({own: 2.0, (4096, 1024, 2, 8): 8.0}).price("bf16", *own)
    assert ratio_at(price, own, 16) == pytest.approx(2.0)
    assert price.inside(16)


def test_four_neighbours_are_asked_and_no_more():
    measured = table({(1024 * 2**step, 1024, 2, 8): 2.0 if step < 4 else 1e6 for step in range(8)})
    wanted = (1000, 1024, 2, 8)
    assert ratio_at(measured.price("bf16", *wanted), wanted, 16) == pytest.approx(2.0, rel=1e-6)


def test_a_routing_that_was_not_measured_takes_one_that_was_and_is_extrapolated():
    own = (1024, 1024, 2, 8)
    measured = table({own: 2.0})
    price = measured.price("bf16", *own, distribution="power_law_1.2")
    assert ratio_at(price, own, 16) == pytest.approx(2.0)
    assert not price.inside(16)
    assert measured.price("fp8", *own) is None
