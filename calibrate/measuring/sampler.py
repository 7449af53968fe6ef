"""Which candidate to measure next: where the fit is least sure and target models spend time, for the time it takes.

A candidate's worth is the deviation that its kernels leave in the time of its own step: of each the share in that step
times how unsure it is. Those of all candidates together, by their use, are the expected error.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray

from calibrate.measuring.device import Candidate, KernelPoint
from calibrate.measuring.repetition import Measured
from calibrate.measuring.surrogate import Group, Peaks, Surrogate, group_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Outlook:
    """Of each candidate: its seconds, and how much of them is unsure (a standard deviation, relative)."""

    seconds: Floats
    unsure: Floats
    expected_error: float


class Sampler:
    """Chooses among ``candidates``; ``by_time`` weighs what a choice brings against the seconds that it takes."""

    def __init__(self, candidates: Sequence[Candidate], by_time: bool = True, peaks: Peaks | None = None) -> None:
        self._candidates = list(candidates)
        self._peaks = peaks
        self._by_time = by_time
        self._surrogates: dict[Group, Surrogate] = {}
        self._outside: dict[str, float] = {}
        self._measured: set[str] = set()
        places: dict[Group, dict[KernelPoint, int]] = {}
        self._rows: list[list[tuple[Group, int, int]]] = []
        for candidate in self._candidates:
            row = []
            for point, count in candidate.kernels.items():
                group = group_of(point)
                of_group = places.setdefault(group, {})
                row.append((group, of_group.setdefault(point, len(of_group)), count))
            self._rows.append(row)
        self._points = {group: list(found) for group, found in places.items()}
        self._use = np.array([candidate.use for candidate in self._candidates])

    def tell(self, found: Iterable[Measured]) -> None:
        """Take note of measurements."""
        for measured in found:
            for sample in measured.samples:
                self._surrogates.setdefault(group_of(sample.point), Surrogate(self._peaks)).add(
                    sample.point, sample.latency_s
                )

    def take_as_measured(self, names: Iterable[str]) -> None:
        """Choose these no more."""
        self._measured.update(names)

    def outlook(self) -> Outlook:
        """What is believed of all candidates."""
        nothing = Surrogate()
        told = {group: self._surrogates.get(group, nothing).predict(points) for group, points in self._points.items()}
        seconds, unsure = np.zeros(len(self._rows)), np.zeros(len(self._rows))
        for place, row in enumerate(self._rows):
            times = np.array([count * exp(told[group][0][index]) for group, index, count in row])
            deviations = np.array([min(told[group][1][index], 2.0) for group, index, _ in row])
            seconds[place] = times.sum()
            unsure[place] = float(times @ deviations) / seconds[place]
        expected = float(np.average(unsure, weights=self._use)) if self._use.sum() else 0.0
        return Outlook(seconds, unsure, expected)

    def choose(self, outlook: Outlook, count: int = 1) -> list[Candidate]:
        """The ``count`` candidates of greatest worth that were not chosen before."""
        worth = self._use * outlook.unsure
        if self._by_time:
            worth = worth / np.maximum(outlook.seconds, 1e-3)
        worth = np.where([candidate.name in self._measured for candidate in self._candidates], -1.0, worth)
        order = np.argsort(-worth, kind="stable")
        chosen = [self._candidates[place] for place in order[:count].tolist() if worth[place] >= 0]
        self.take_as_measured(candidate.name for candidate in chosen)
        return chosen
