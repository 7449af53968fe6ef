"""Attention of decodes: a table over (batch, context).

A batch of unequal contexts is priced by its size and total context, as if all were of the mean length: latency at a
given batch is all but affine in context. docs/results/kernel-fits.md states how far from it.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from simcore.cost.calibrated.base import Rates, generation_work
from simcore.cost.calibrated.curve import Curve
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.calibrated.price import CurvePrice, Source
from simcore.cost.calibrated.shape_grid import ShapeGrid
from simcore.cost.calibrated.table import KernelTable, without_gaps

GENERATION_KEYS = ("kv_dtype", "head_dim", "window", "heads", "kv_heads", "batch")
_Family = tuple[str, int, int]


@dataclass(slots=True)
class GenerationPrice:
    """Attention of one new token of each request of a batch, in one layer of one shape, on one rank.

    With ``data_ranks`` the batch is dealt out evenly to so many, which work at once; with ``spread`` each
    context is divided among so many. Beyond the measured contexts a token takes ``least_s_per_token`` at least.
    """

    batches: NDArray[np.float64]
    contexts: NDArray[np.float64]
    log_ratio: NDArray[np.float64]
    rates: Rates
    shape: tuple[str, int, int, int, int]
    source: Source
    errors: ErrorQuantiles
    shape_inside: bool
    data_ranks: int = 1
    spread: int = 1
    least_s_per_token: float = 0.0
    _curves: dict[int, CurvePrice] = field(default_factory=dict)

    def over_total_context(self, batch: int) -> CurvePrice:
        """The price of ``batch`` requests over the sum of their contexts, new tokens included; made once per batch."""
        price = self._curves.get(batch)
        if price is None:
            price = self._make(-(-batch // self.data_ranks))
            if self.data_ranks * self.spread > 1:
                price = replace(price, curve=price.curve.stretched(self.data_ranks * self.spread))
            self._curves[batch] = price
        return price

    def seconds(self, batch: int, total_context: float) -> float:
        """The kernel over ``batch`` requests with ``total_context`` tokens together."""
        return self.over_total_context(batch).curve.at(total_context)

    def inside(self, batch: int, total_context: float) -> bool:
        """Whether shape, batch and mean context lie in the calibrated range."""
        return self.over_total_context(batch).inside(total_context)

    def _make(self, batch: int) -> CurvePrice:
        ratio = _along_log(self.batches, self.log_ratio, batch)
        known = ~np.isnan(ratio)
        inside = self.shape_inside and bool(self.batches[0] <= batch <= self.batches[-1])
        if not known.any():  # larger than any batch that was measured
            largest = self.batches[(~np.isnan(self.log_ratio)).any(axis=1)][-1]
            ratio = _along_log(self.batches, self.log_ratio, largest)
            known = ~np.isnan(ratio)
            inside = False
        curve = Curve.along(
            lambda total: self._base_s(batch, total / batch),
            batch * self.contexts[known],
            ratio[known],
            self.least_s_per_token,
        )
        return CurvePrice(curve, self.source, self.errors, inside)

    def _base_s(self, batch: int, contexts: NDArray[np.float64] | float) -> NDArray[np.float64]:
        kv_dtype, head_dim, window, heads, kv_heads = self.shape
        work = generation_work(kv_dtype, heads, kv_heads, head_dim, batch, contexts, window)
        return np.asarray(self.rates.seconds(*work))


class GenerationTable:
    """Generation attention of a profile."""

    def __init__(self, table: KernelTable, rates: dict[str, Rates], errors: ErrorQuantiles) -> None:
        self._contexts = table.knots
        self._rates = rates
        self._errors = errors
        batches = sorted({int(row[5]) for row in table.rows})
        self._batches = np.array(batches, dtype=np.float64)
        values: dict[_Family, dict[tuple[int, int], NDArray[np.float64]]] = {}
        for (kv_dtype, head_dim, window), (keys, latency_s) in table.families(3).items():
            heads, kv_heads, batch = keys.T[:, :, None]
            work = generation_work(str(kv_dtype), heads, kv_heads, head_dim, batch, table.knots, int(window))
            ratios = without_gaps(table.knots, np.log(latency_s / rates[str(kv_dtype)].seconds(*work)))
            shapes = values[str(kv_dtype), int(head_dim), int(window)] = {}
            for (*shape, of_batch), ratio in zip(keys.tolist(), ratios, strict=True):
                if tuple(shape) not in shapes:
                    shapes[tuple(shape)] = np.full((len(batches), len(table.knots)), np.nan)
                shapes[tuple(shape)][batches.index(of_batch)] = ratio
        self._grids = {family: ShapeGrid(of_family) for family, of_family in values.items()}

    @property
    def families(self) -> tuple[_Family, ...]:
        """The (KV dtype, head dimension, window) that were measured; window 0 is full attention."""
        return tuple(sorted(self._grids))

    def price(self, kv_dtype: str, heads: int, kv_heads: int, head_dim: int, window: int = 0) -> GenerationPrice | None:
        """Attention of that shape; None if KV dtype and head dimension were not measured together, at least in full.

        Where a window was not measured, full attention over as much context stands in: callers count what is within it.
        """
        if (kv_dtype, head_dim, window) not in self._grids:
            window = 0
        grid = self._grids.get((kv_dtype, head_dim, window))
        if grid is None:
            return None
        found = grid.at(heads, kv_heads)
        return GenerationPrice(
            self._batches,
            self._contexts,
            found.values,
            self._rates[kv_dtype],
            (kv_dtype, head_dim, window, heads, kv_heads),
            Source.CALIBRATED,
            self._errors,
            found.inside,
        )


def _along_log(axis: NDArray[np.float64], values: NDArray[np.float64], at: float) -> NDArray[np.float64]:
    """Rows of ``values`` interpolated at ``at`` over the logarithm of ``axis``, the nearest row outside it.

    Where only one of two neighbours is known, it stands for both.
    """
    index = int(np.clip(np.searchsorted(axis, at, side="right") - 1, 0, len(axis) - 1))
    low = values[index]
    if at <= axis[index] or index == len(axis) - 1:
        return np.asarray(low)
    high = values[index + 1]
    weight = np.log(at / axis[index]) / np.log(axis[index + 1] / axis[index])
    both = (1 - weight) * low + weight * high
    return np.where(np.isnan(both), np.where(np.isnan(low), high, low), both)
