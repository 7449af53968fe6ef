"""How sure a difference between two variants is.

Variants are run on the same requests (common random numbers), so what the requests have in common drops out of a
difference, and differences of pairs vary far less than the runs do (Law, Simulation Modeling and Analysis, 5th ed.,
2015, sections 10.2 and 11.2). The interval decides: Student's t for the mean of paired differences, widened for the
number of comparisons (Bonferroni), so that all intervals of a metric hold together. It takes means of differences to be
about normal. For information there is the p-value of Fisher's permutation test for pairs, which flips signs and assumes
no distribution. Since there are 2^pairs ways to flip them, it cannot fall below 2 / 2^pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from scipy.special import stdtr, stdtrit

from simcore.metrics.arrays import Float64Array
from simcore.metrics.confidence import LEVEL

SIGNIFICANT = 1 - LEVEL
"""The chance that some interval of a metric misses its true difference."""
MOST_FLIPS = 2**14
"""Ways to flip signs up to which all are tried; of more, so many are drawn."""
_DECIMALS = 12
_SEED = 0
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Estimate:
    """A difference with its confidence interval and two-sided p-value; None where the data allow none."""

    difference: float
    low: float | None = None
    high: float | None = None
    p_value: float | None = None


def mean_difference(differences: Float64Array, comparisons: int = 1) -> Estimate:
    """The mean of independent paired differences, one of so many comparisons with the baseline.

    Interval and p-value need two pairs; the p-value is of the permutation test, not adjusted.
    """
    mean, pairs = float(differences.mean()), len(differences)
    if pairs < 2:
        return Estimate(mean)
    standard_error = float(differences.std(ddof=1)) / sqrt(pairs)
    estimate = student(mean, standard_error, pairs, comparisons)
    return replace(estimate, p_value=permutation_p_value(differences))


def permutation_p_value(differences: Float64Array) -> float:
    """The share of the ways to flip the signs of the differences whose mean is at least as far from 0.

    Exact up to ``MOST_FLIPS`` ways; beyond, of so many that are drawn with a fixed seed, the one seen counted in.
    """
    from scipy.stats import permutation_test  # slow to import, which every command would pay for

    magnitude = float(np.abs(differences).max())
    if magnitude == 0:
        return 1.0
    found = permutation_test(
        (differences / magnitude,),
        _rounded_mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=MOST_FLIPS,
        random_state=np.random.default_rng(_SEED),
    )
    return float(found.pvalue)


def _rounded_mean(values: Float64Array, axis: int) -> Float64Array:
    """Means so that those which are equal but for rounding are equal: of values that cancel, few digits are left."""
    return np.asarray(np.round(values.mean(axis=axis), _DECIMALS))


def least_p_value(pairs: int) -> float:
    """The least p-value that so many pairs can give."""
    return 2.0 / 2.0**pairs if 2**pairs <= MOST_FLIPS else 2.0 / (MOST_FLIPS + 1)


def fewest_pairs(comparisons: int) -> int:
    """Pairs below which none of so many comparisons can be significant once p-values are adjusted."""
    pairs = 1
    while comparisons * 2.0 / 2.0**pairs >= SIGNIFICANT:
        pairs += 1
    return pairs


def student(difference: float, standard_error: float, pairs: int, comparisons: int = 1) -> Estimate:
    """Student's t with ``pairs`` - 1 degrees of freedom: an interval widened for ``comparisons``, and a plain p-value.

    Where the pairs do not vary at all, the interval has no width, no difference has p = 1, and any other the least p
    that the signs of so many pairs can give.
    """
    if standard_error <= _ROUNDING * abs(difference):
        p_value = 1.0 if difference == 0 else 2.0 ** (1 - pairs)
        return Estimate(difference, difference, difference, p_value)
    half = float(stdtrit(pairs - 1, 1 - (1 - LEVEL) / 2 / comparisons)) * standard_error
    p_value = 2 * float(stdtr(pairs - 1, -abs(difference) / standard_error))
    return Estimate(difference, difference - half, difference + half, p_value)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values adjusted so that all of them together err with the stated probability (Holm, Scand. J. Stat. 1979).

    Valid however the tests depend on each other, as those against one baseline do.
    """
    adjusted = [0.0] * len(p_values)
    least = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = least
    return adjusted
