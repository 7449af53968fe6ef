"""How far simulated figures are off, over many cases: medians and means of relative errors."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from fidelity.case import Outcome


@dataclass(frozen=True, slots=True)
class Deviation:
    """Relative errors e = (simulated - measured) / measured of one figure over ``cases``.

    ``median`` and ``mean`` are of |e|, ``p90`` its 90th percentile, ``bias`` the median of e: below 0 where the
    simulator is too fast. ``covered`` is the share of measured values inside the run's uncertainty band, over the cases
    that have one, None without any.
    """

    cases: int
    median: float
    mean: float
    p90: float
    bias: float
    covered: float | None = None


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of measured values below, inside and above the uncertainty bands of ``cases``.

    ``ratio`` is the median of high / low.
    """

    cases: int
    below: float
    inside: float
    above: float
    ratio: float


def coverage(outcomes: Iterable[Outcome], key: str) -> Coverage | None:
    """Where the measured values of one figure lie relative to its bands; None if no outcome has one."""
    pairs = [(*outcome.bands[key], outcome.case.measured[key]) for outcome in outcomes if key in outcome.bands]
    if not pairs:
        return None
    low, high, measured = np.asarray(pairs, dtype=np.float64).T
    below, above = float((measured < low).mean()), float((measured > high).mean())
    return Coverage(
        len(pairs), below, float(((low <= measured) & (measured <= high)).mean()), above, float(np.median(high / low))
    )


def deviation(outcomes: Iterable[Outcome], key: str) -> Deviation | None:
    """The deviation of one figure; None if no outcome has it."""
    outcomes = list(outcomes)
    bands = coverage(outcomes, key)
    errors = [error for outcome in outcomes if (error := outcome.error(key)) is not None and isfinite(error)]
    if not errors:
        return None
    return deviation_of(errors, None if bands is None else bands.inside)


def deviation_of(errors: Sequence[float], covered: float | None = None) -> Deviation:
    """The deviation of at least one relative error."""
    signed = np.asarray(errors, dtype=np.float64)
    size = np.abs(signed)
    return Deviation(
        len(signed),
        float(np.median(size)),
        float(size.mean()),
        float(np.percentile(size, 90)),
        float(np.median(signed)),
        covered,
    )


def grouped(outcomes: Iterable[Outcome], label: str) -> dict[str, list[Outcome]]:
    """Outcomes by one of their labels, numbers in order of size and names in alphabetical order."""
    groups: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.case.labels[label]].append(outcome)
    return {name: groups[name] for name in sorted(groups, key=_rank)}


def _rank(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdecimal() else (0, name)
