"""How sure a difference between two variants is.

Variants are run on the same requests (common random numbers), so what the requests have in common drops out of a
difference, and differences of pairs vary far less than the runs do (Law, Simulation Modeling and Analysis, 5th ed.,
2015, sections 10.2 and 11.2). A mean difference over independent seeds has the paired t interval. Beside its p-value
stands the exact one of Fisher's sign-flip test, which assumes no distribution but cannot fall below 2 / 2^pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import stdtr, stdtrit

from simcore.metrics.confidence import LEVEL
from simcore.metrics.definitions import Float64Array

MOST_FLIPPED_PAIRS = 20
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Estimate:
    """A difference with its confidence interval and two-sided p-value; None where the data allow none."""

    difference: float
    low: float | None = None
    high: float | None = None
    p_value: float | None = None


def mean_difference(differences: Float64Array) -> Estimate:
    """The mean of independent paired differences, with the paired t interval and p-value; those need two pairs."""
    mean = float(differences.mean())
    if len(differences) < 2:
        return Estimate(mean)
    return student(mean, float(differences.std(ddof=1)) / sqrt(len(differences)), len(differences))


def student(difference: float, standard_error: float, pairs: int) -> Estimate:
    """Student's t interval and test with ``pairs`` - 1 degrees of freedom.

    Where the pairs do not vary at all, no difference has p = 1, and any other the least p that the signs of so many
    pairs can give.
    """
    if standard_error <= _ROUNDING * abs(difference):
        p_value = 1.0 if difference == 0 else 2.0 ** (1 - pairs)
        return Estimate(difference, difference, difference, p_value)
    half = float(stdtrit(pairs - 1, (1 + LEVEL) / 2)) * standard_error
    p_value = 2 * float(stdtr(pairs - 1, -abs(difference) / standard_error))
    return Estimate(difference, difference - half, difference + half, p_value)


def sign_flip_p_value(differences: Float64Array) -> float | None:
    """The share of all ways to flip the signs of the differences whose sum is at least as far from 0; exact.

    None for more pairs than ``MOST_FLIPPED_PAIRS``, as the ways double with each.
    """
    if not 1 <= len(differences) <= MOST_FLIPPED_PAIRS:
        return None
    sums = differences[:1]  # a sum and its mirror image are equally far from 0, so the first sign may stay
    for difference in differences[1:]:
        sums = np.concatenate((sums + difference, sums - difference))
    threshold = abs(float(differences.sum())) - _ROUNDING * float(np.abs(differences).sum())
    return float((np.abs(sums) >= threshold).mean())


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
