"""How far simulated figures are off, over many cases: medians and means of relative errors."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np

from simcore.fidelity.case import Outcome


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


def deviation(outcomes: Iterable[Outcome], key: str) -> Deviation | None:
    """The deviation of one figure; None if no outcome has it."""
    outcomes = list(outcomes)
    errors = [error for outcome in outcomes if (error := outcome.error(key)) is not None and isfinite(error)]
    if not errors:
        return None
    inside = [
        band[0] <= outcome.case.measured[key] <= band[1]
        for outcome in outcomes
        if (band := outcome.bands.get(key)) is not None
    ]
    return deviation_of(errors, sum(inside) / len(inside) if inside else None)


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
