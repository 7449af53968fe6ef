"""How sure a difference within one pair of runs is: a bootstrap over the requests that both runs served.

Requests of one run depend on their neighbours through the queue, so whole blocks of consecutive requests are drawn,
from anywhere in the run and around its end (the circular block bootstrap of Politis and Romano, 1992), the same ones in
both runs. The spread of the difference over the draws is its standard error. Blocks must be long against the time over
which the queue forgets, as must the sections of the intervals of a single run (``simcore.metrics.confidence``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from simcore.metrics.arrays import Float64Array, Int64Array
from simcore.metrics.confidence import OBSERVATIONS_BEYOND, SECTIONS
from simcore.workload.streams import random_stream

BLOCKS = SECTIONS
DRAWS = 500


class Statistic(Protocol):
    """A figure of one run that can be computed again with each request counted several times, or not at all."""

    def of(self, counts: Int64Array) -> float:
        """The figure with so many of each request; NaN if it has no value."""

    @property
    def enough(self) -> bool:
        """Whether there are enough requests for draws of them to tell anything."""


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of a value over all requests."""

    values: Float64Array

    def of(self, counts: Int64Array) -> float:
        """The sum with so many of each request."""
        return float(self.values @ counts)

    @property
    def enough(self) -> bool:
        """Whether blocks hold two requests each."""
        return len(self.values) >= 2 * BLOCKS


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a value over the requests that have one; NaN stands for none."""

    values: Float64Array

    def of(self, counts: Int64Array) -> float:
        """The mean with so many of each request."""
        known = np.isfinite(self.values)
        total = int(counts[known].sum())
        return float(self.values[known] @ counts[known]) / total if total else np.nan

    @property
    def enough(self) -> bool:
        """Whether blocks hold two values each."""
        return int(np.isfinite(self.values).sum()) >= 2 * BLOCKS


@dataclass(slots=True)
class Percentile:
    """A percentile of a value over the requests that have one; NaN stands for none."""

    values: Float64Array
    percent: float
    _order: Int64Array = field(init=False)

    def __post_init__(self) -> None:
        order = np.argsort(self.values, kind="stable")
        self._order = order[: int(np.isfinite(self.values).sum())]  # NaN is sorted last

    def of(self, counts: Int64Array) -> float:
        """The percentile with so many of each request, as ``numpy.percentile`` of all of them."""
        upto = np.cumsum(counts[self._order])
        if not len(upto) or not upto[-1]:
            return np.nan
        place = self.percent / 100 * (int(upto[-1]) - 1)
        below = int(place)
        ranks = np.searchsorted(upto, [below, min(below + 1, int(upto[-1]) - 1)], side="right")
        lower, upper = self.values[self._order[ranks]]
        return float(lower + (place - below) * (upper - lower))

    @property
    def enough(self) -> bool:
        """Whether some observations lie beyond the percentile."""
        beyond = len(self._order) * min(self.percent, 100 - self.percent) / 100
        return len(self._order) >= 2 * BLOCKS and beyond >= OBSERVATIONS_BEYOND


def standard_errors(pairs: Sequence[tuple[Statistic, Statistic]], requests: int, seed: int) -> list[float | None]:
    """Standard errors of the difference of every pair of figures over the same requests, all from the same draws.

    None where there are too few requests to tell. The same arguments give the same errors.
    """
    asked = [index for index, pair in enumerate(pairs) if all(figure.enough for figure in pair)]
    errors: list[float | None] = [None] * len(pairs)
    if asked:
        drawn = np.array(
            [
                [pairs[index][1].of(counts) - pairs[index][0].of(counts) for index in asked]
                for counts in _drawn_counts(requests, seed)
            ]
        )
        for index, error in zip(asked, drawn.std(axis=0, ddof=1), strict=True):
            errors[index] = float(error) if np.isfinite(error) else None
    return errors


def _drawn_counts(requests: int, seed: int) -> Iterator[Int64Array]:
    """How often each request is drawn, ``DRAWS`` times; every time as many in all as there are."""
    random = random_stream(seed, "comparison bootstrap")
    sizes = np.diff(np.linspace(0, requests, BLOCKS + 1).astype(np.int64))
    for _ in range(DRAWS):
        starts = random.integers(requests, size=BLOCKS)
        ends = starts + sizes
        changes = np.zeros(requests + 1, dtype=np.int64)
        np.add.at(changes, starts, 1)
        np.add.at(changes, np.minimum(ends, requests), -1)
        around = ends > requests
        changes[0] += int(around.sum())
        np.add.at(changes, ends[around] - requests, -1)
        yield np.cumsum(changes[:-1])
