"""What a fit gives, and how a kernel kind is fitted and read back."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrate.fit.grids import TOLERANCE, knots_of
from calibrate.samples import SampleTable
from simcore.cost.calibrated.base import Rates
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.calibrated.table import KernelTable, Key

UNKNOWN = ErrorQuantiles(1, 0.0, 0.0, 0.0, (0.0,) * 7)
"""Stands for errors while they are being measured."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table and the flat rates it is relative to."""

    table: KernelTable
    rates: dict[str, Rates] = field(default_factory=dict)


class KindFit(ABC):
    """The fit of one kernel kind."""

    groups: str | None = None
    """The column by which held-out errors are stated apart ("dtype"), if any."""

    @abstractmethod
    def fit(self, samples: SampleTable) -> Fitted:
        """Fit a table to samples of the kind."""

    @abstractmethod
    def predict(self, fitted: Fitted, samples: SampleTable) -> NDArray[np.float64]:
        """What the simulator would price at each sample, by its own reader; NaN where it has no price."""


class TableBuilder:
    """Rows of a table whose knots differ, put together over the union of all knots."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = keys
        self._rows: list[tuple[tuple[Key, ...], NDArray[Any], NDArray[np.float64]]] = []

    def add(self, row: tuple[Key, ...], knots: NDArray[Any], latency_s: NDArray[np.float64]) -> None:
        """A row; NaN latencies are left out."""
        self._rows.append((row, knots, latency_s))

    def add_thinned(
        self, row: tuple[Key, ...], knots: NDArray[Any], latency_s: NDArray[np.float64], base_s: NDArray[np.float64]
    ) -> None:
        """A row without the knots that readers find by its ratio to ``base_s`` at the others (``without_gaps``)."""
        known = np.flatnonzero(~np.isnan(latency_s))
        kept = known[knots_of(np.log(knots[known]), np.log(latency_s[known] / base_s[known]), TOLERANCE)]
        self.add(row, knots[kept], latency_s[kept])

    def build(self) -> KernelTable:
        """The table, without knots that no row has."""
        known = [knots[~np.isnan(latency_s)] for _, knots, latency_s in self._rows]
        union = np.unique(np.concatenate(known)).astype(np.float64)
        latencies = np.full((len(self._rows), len(union)), np.nan)
        for index, (_, knots, latency_s) in enumerate(self._rows):
            chosen = ~np.isnan(latency_s)
            latencies[index, np.searchsorted(union, knots[chosen])] = latency_s[chosen]
        return KernelTable(self._keys, [row for row, _, _ in self._rows], union, latencies)
