"""A device that answers from a table that somebody measured: how many points a choice of them needs."""

from collections.abc import Callable, Sequence

import numpy as np

from calibrate.fit.held_out import undisturbed
from calibrate.measuring.device import Candidate, KernelPoint, Reading
from calibrate.samples import SHAPE_COLUMNS, SampleTable

Use = Callable[[KernelPoint], float]


class ReplayDevice:
    """Every shape of some tables is a candidate; readings are its measured time with log-normal ``noise``.

    ``use`` says how much target models need a kernel.
    """

    def __init__(self, tables: Sequence[SampleTable], use: Use, noise: float, seed: int) -> None:
        self._latency_s: dict[str, tuple[KernelPoint, float]] = {}
        self._candidates: list[Candidate] = []
        self._noise, self._random = noise, np.random.default_rng(seed)
        for table in tables:
            points = undisturbed(table)
            for point, latency_s in zip(points_of(points), points.latency_s.tolist(), strict=True):
                name = f"{point.kind} {' '.join(map(str, point.shape))}"
                self._latency_s[name] = point, latency_s
                self._candidates.append(Candidate(name, {point: 1}, use(point)))

    def candidates(self) -> Sequence[Candidate]:
        """All shapes."""
        return self._candidates

    def read(self, candidate: Candidate) -> Reading:
        """The time in the table, with noise."""
        point, latency_s = self._latency_s[candidate.name]
        seconds = latency_s * float(np.exp(self._noise * self._random.standard_normal()))
        return Reading({point: seconds}, seconds)


def points_of(samples: SampleTable) -> list[KernelPoint]:
    """The shapes of samples."""
    names = SHAPE_COLUMNS[samples.kind]
    rows = zip(*(samples.columns[name].tolist() for name in names), strict=True)
    return [KernelPoint(samples.kind, tuple(row)) for row in rows]
