"""The rule of verdicts, and intervals of pairs."""

import numpy as np
import pytest
from pydantic import ValidationError

from papers.harness.findings import (
    DOES_NOT_HOLD,
    HOLDS,
    IN_DIRECTION,
    Finding,
    Value,
    practice,
    rounded,
    value_of,
    verdict,
)
from papers.harness.published import Claim, Comparison, Practice
from papers.harness.study import Measured


def claim(**stated):
    return Claim(**({"words": "", "figure": "rate", "of": "a", "over": "b", "published": 4.0, "status": ""} | stated))


@pytest.mark.parametrize(
    ("stated", "ours", "expected"),
    [
        ({}, Value(3.1, 2.0, 5.0), HOLDS),
        ({}, Value(2.9, 2.0, 5.0), IN_DIRECTION),
        ({}, Value(3.9, 0.9, 9.0), DOES_NOT_HOLD),
        ({}, Value(0.5, 0.4, 0.6), DOES_NOT_HOLD),
        ({"published": (2.0, 4.0)}, Value(1.6, 1.5, 1.7), HOLDS),
        ({"published": (2.0, 4.0)}, Value(5.1, 5.0, 5.2), IN_DIRECTION),
        ({"published": 0.5}, Value(0.6, 0.5, 0.7), HOLDS),
        ({"published": 0.5}, Value(0.9, 0.8, 0.95), IN_DIRECTION),
        ({"published": 0.5}, Value(1.2, 1.1, 1.3), DOES_NOT_HOLD),
        ({"beyond": None}, Value(4.5, 1.0, 9.0), HOLDS),
        ({"beyond": None}, Value(5.5, 5.4, 5.6), DOES_NOT_HOLD),
        ({"beyond": None, "tolerance": 0.0}, Value(4.0, 4.0, 4.0), HOLDS),
    ],
)
def test_verdicts(stated, ours, expected):
    assert verdict(claim(**stated), ours) == expected


def test_a_claim_without_direction_must_say_so():
    with pytest.raises(ValidationError, match="there is no direction"):
        claim(published=(0.9, 1.1))


def test_a_ratio_is_of_pairs():
    """Rates that differ tenfold between seeds, but by the same factor between systems, have a narrow interval."""
    rates = np.array([1.0, 10.0, 100.0])
    factors = np.array([2.0, 2.1, 1.9])
    measured = Measured(
        {
            ("published", "a"): [{"rate": rate} for rate in (rates * factors).tolist()],
            ("published", "b"): [{"rate": rate} for rate in rates.tolist()],
        }
    )
    ours = value_of(claim(), measured)
    assert ours.value == pytest.approx(factors.prod() ** (1 / 3))
    assert 1.7 < ours.low < ours.value < ours.high < 2.3
    assert value_of(claim(over=None), measured).low < 0


def test_one_seed_has_no_interval():
    measured = Measured({("published", "a"): [{"rate": 3.0}], ("published", "b"): [{"rate": 2.0}]})
    assert value_of(claim(), measured) == Value(*[pytest.approx(1.5)] * 3)


@pytest.mark.parametrize(
    ("values", "expected"),
    [((2.0, 3.0), "yes"), ((2.0, 0.5), "some"), ((0.4, 0.5), "no")],
)
def test_the_sentence_for_practice_follows_the_intervals(values, expected):
    class _Stated:
        today = Practice(comparisons=[], pays="yes", differs="some", costs="no")

    comparison = Comparison(words="x", figure="rate", of="a")
    found = [Finding(comparison, Value(value, value * 0.9, value * 1.1)) for value in values]
    assert practice(_Stated(), found).startswith(expected)
    assert practice(_Stated(), []) == ""


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (36.94, "36.9"), (1234.5, "1,234"), (0.00123, "0.00123")])
def test_figures_are_rounded(value, text):
    assert rounded(value) == text
