"""How often to measure: until the interval of the median is tight, or time is up."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from time import monotonic

import numpy as np

from calibrate.measuring.device import Candidate, Device, KernelPoint, Reading

_WIDTH = 1.96
"""Of a normal distribution, for an interval of 95%."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """A candidate is measured ``least`` times at the fewest, and ``most`` or for ``most_s`` seconds at the most.

    Before that its interval may be ``tight``, relative to the median: then it is enough.
    """

    least: int = 5
    most: int = 15
    most_s: float = 2.0
    tight: float = 0.03
    warm_up: int = 1


@dataclass(frozen=True, slots=True)
class KernelSample:
    """A kernel's median over repetitions, and the interval in which the true median lies in 19 of 20 cases.

    The medians of the kernels measured together add up to the median of their sum.
    """

    point: KernelPoint
    latency_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class Measured:
    """A candidate measured: its kernels, what belongs to none, and all of it; medians.

    Of ``repeats`` those ``disturbed`` were left out, unless too few others were there. ``outliers`` are more than a
    half above the median; medians leave them where they are.
    """

    name: str
    samples: tuple[KernelSample, ...]
    rest_s: float
    total_s: float
    repeats: int
    disturbed: int
    outliers: int
    conditions: dict[str, float]


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, and the order statistics around it that hold the true one in 95% of cases (Conover, 1999, section 3.2).

    By the normal approximation of ranks; of few values the least and the greatest.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    count = len(ordered)
    reach = _WIDTH * sqrt(count) / 2
    low, high = max(int(np.floor(count / 2 - reach)), 0), min(int(np.ceil(count / 2 + reach)), count - 1)
    return float(np.median(ordered)), float(ordered[low]), float(ordered[high])


def measure(device: Device, candidate: Candidate, repetition: Repetition | None = None) -> Measured:
    """Measure a candidate as often as it takes."""
    rule = repetition or Repetition()
    for _ in range(rule.warm_up):
        device.read(candidate)
    began, readings = monotonic(), [device.read(candidate)]
    while not _enough(readings, monotonic() - began, rule):
        readings.append(device.read(candidate))
    kept = _kept(readings, rule.least)
    totals = [reading.total_s for reading in kept]
    middle_s = float(np.median(totals))
    found = {point: median_interval([reading.seconds[point] for reading in kept]) for point in kept[0].seconds}
    scale = _together(candidate, kept) / sum(median * _count(candidate, point) for point, (median, *_) in found.items())
    samples = [KernelSample(point, *(scale * value for value in interval)) for point, interval in found.items()]
    conditions = {name: float(np.median([reading.conditions[name] for reading in kept])) for name in kept[0].conditions}
    return Measured(
        candidate.name,
        tuple(samples),
        float(np.median([reading.rest_s for reading in kept])),
        middle_s,
        len(readings),
        sum(reading.disturbed for reading in readings),
        int(sum(total > 1.5 * middle_s for total in totals)),
        conditions,
    )


def _together(candidate: Candidate, readings: Sequence[Reading]) -> float:
    """The median time of all kernels of a reading.

    What disturbs a reading hits one kernel now and another then. The medians of the kernels, each for itself, would
    leave all of that out, and come to less than any reading took.
    """
    return float(
        np.median([sum(one.seconds[point] * _count(candidate, point) for point in one.seconds) for one in readings])
    )


def _count(candidate: Candidate, point: KernelPoint) -> int:
    return candidate.kernels.get(point, 1)


def _kept(readings: Sequence[Reading], least: int) -> list[Reading]:
    """Undisturbed ones; where there are less than ``least``, the fastest of all as well."""
    calm = [reading for reading in readings if not reading.disturbed]
    if len(calm) >= least:
        return calm
    return sorted(readings, key=lambda reading: (reading.disturbed, reading.total_s))[: max(least, len(calm))]


def _enough(readings: Sequence[Reading], passed_s: float, rule: Repetition) -> bool:
    if len(readings) < min(rule.least, 3):
        return False
    if len(readings) >= rule.most or passed_s >= rule.most_s:
        return True
    calm = [reading.total_s for reading in readings if not reading.disturbed]
    if len(calm) < rule.least:
        return False
    median, low, high = median_interval(calm)
    return high - low <= 2 * rule.tight * median
