"""Attention of prompt chunks: a table over (batch, tokens), or over (prefix, tokens).

Chunks launched together are priced as so many prompts alike: of the mean length, weighted by attended pairs, as many as
attend to the same pairs. A chunk over a prefix is thereby a part of a prompt of its total length, and a part of one
takes from what one row of query tiles needs to sweep the context (a prompt's time with the fewest heads measured)
to the whole prompt's time, in proportion; never less than the chunk without its prefix. docs/results/kernel-fits.md has
how far that is from chunks over prefixes where such were measured.

A table over prefixes, of single chunks, is read as it stands, and chunks together add up above the floor; those that an
engine launches one by one add up whole.

Where a window was not measured but full attention was, a chunk costs what full attention does over as many pairs: of
prompts twice the window long, whose tokens see as many others in the mean, where it is longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simcore.cost.calibrated.base import Number, Rates, context_work
from simcore.cost.calibrated.curve import Curve
from simcore.cost.calibrated.errors import ErrorQuantiles
from simcore.cost.calibrated.price import Source
from simcore.cost.calibrated.shape_grid import ShapeGrid
from simcore.cost.calibrated.table import KernelTable, without_gaps

CONTEXT_KEYS = ("kv_dtype", "head_dim", "window", "heads", "kv_heads", "batch", "prefix")
_Family = tuple[str, int, int]
_Row = tuple[int, int]
_SHORTEST_SWEEP = 1e-9


@dataclass(frozen=True, slots=True)
class ContextPrice:
    """Attention of prompt chunks in one layer of one shape, on one rank.

    ``curves`` are over tokens, at each of ``levels``: numbers of prompts, or lengths of prefix if ``by_prefix``.
    ``sweep`` is what a single row of query tiles takes over so many tokens. With ``of_full`` all that was measured
    without the ``window``. ``apart``: chunks are launched one by one.
    """

    levels: tuple[int, ...]
    curves: tuple[Curve, ...]
    by_prefix: bool
    sweep: Curve
    window: int
    of_full: bool
    source: Source
    errors: ErrorQuantiles
    shape_inside: bool
    apart: bool = False

    def seconds(self, tokens: int, prefix: int = 0, batch: int = 1) -> float:
        """The kernel over ``batch`` chunks of ``tokens`` over ``prefix`` computed tokens."""
        return self.step_s([(tokens, prefix)] * batch)

    def step_s(self, chunks: Sequence[tuple[int, int]]) -> float:
        """The kernel over several chunks, each (tokens, prefix); nothing for none."""
        if not chunks:
            return 0.0
        if self.by_prefix:
            floor_s = self.curves[0].at(0)
            launched_s = floor_s * (len(chunks) if self.apart else 1)
            return launched_s + sum(self._over_prefix_s(prefix, tokens, floor_s) for tokens, prefix in chunks)
        alone = self.curves[0]
        if len(chunks) == 1 and chunks[0][1] == 0 and (not self.of_full or chunks[0][0] <= self.window):
            return alone.at(chunks[0][0])
        total_pairs = weighted = 0.0
        most = 0
        for tokens, prefix in chunks:
            if 0 < self.window < prefix:
                prefix = self.window  # no token sees what lies before
            pairs = _pairs(tokens, prefix, self.window)
            total_pairs += pairs
            weighted += pairs * (tokens + prefix)
            if tokens > most:
                most = tokens
        length = weighted / total_pairs
        if self.of_full:
            most = min(most, self.window)
            length = min(length, 2.0 * self.window)
        least_s = alone.at(most)
        prompts = total_pairs / _pairs(length, 0, 0 if self.of_full else self.window)
        if prompts >= 1.0:
            return max(self._between(prompts, length), least_s)
        whole_s = alone.at(length)
        sweep_s = min(self._sweep_s(length), whole_s)
        return max(sweep_s + prompts * (whole_s - sweep_s), least_s)

    def _over_prefix_s(self, prefix: int, tokens: int, floor_s: float) -> float:
        """What a chunk adds to the floor, by measured prefixes."""
        if not self.of_full or prefix + tokens <= self.window:
            return self._between(prefix, tokens) - floor_s
        seen = min(prefix, self.window)
        share = _pairs(tokens, seen, self.window) / _pairs(tokens, seen, 0)
        return share * (self._between(seen, tokens) - floor_s)

    def _sweep_s(self, length: float) -> float:
        """What one row of query tiles takes over ``length`` tokens: beyond those measured, in proportion at most.

        A prompt of the fewest heads has more rows there than run side by side, so that its time grows with the square
        of its length; that of one row does not.
        """
        last, longer = self.sweep.last, self.sweep.at(length)
        return longer if length <= last else min(longer, self.sweep.at(last) * (length / last))

    def inside(self, tokens: int, prefix: int = 0) -> bool:
        """Whether a chunk lies in the calibrated range; without measured prefixes, by its total length."""
        if self.of_full and tokens + prefix > self.window:
            return False
        if self.by_prefix:
            return self.shape_inside and self.curves[0].inside(tokens) and prefix <= self.levels[-1]
        seen = min(prefix, self.window) if self.window else prefix
        return self.shape_inside and self.curves[0].first <= tokens and tokens + seen <= self.curves[0].last

    def _between(self, level: float, tokens: float) -> float:
        """Latency is affine in prompts alike and in prefix, so it is interpolated as such; the last slope goes on."""
        levels, curves = self.levels, self.curves
        if len(levels) == 1:
            return curves[0].at(tokens) * (1.0 if self.by_prefix else level / levels[0])
        index = 0
        while index < len(levels) - 2 and levels[index + 1] < level:
            index += 1
        low_s, high_s = curves[index].at(tokens), curves[index + 1].at(tokens)
        return low_s + max(high_s - low_s, 0.0) * (level - levels[index]) / (levels[index + 1] - levels[index])


def _pairs(tokens: float, prefix: int, window: int) -> float:
    """``attended_pairs`` of one chunk, by the same arithmetic; numpy takes microseconds for a single number."""
    growing = tokens if window == 0 else min(tokens, max(window - prefix, 0))
    return growing * (prefix + 0.5 * (growing + 1)) + (tokens - growing) * window


class ContextTable:
    """Context attention of a profile."""

    def __init__(
        self, table: KernelTable, rates: dict[str, Rates], errors: ErrorQuantiles, apart: bool = False
    ) -> None:
        self._tokens = table.knots
        self._apart = apart
        self._rates = rates
        self._errors = errors
        self._rows: dict[_Family, list[_Row]] = {}
        values: dict[_Family, dict[tuple[int, int], NDArray[np.float64]]] = {}
        for (kv_dtype, head_dim, window), (keys, latency_s) in table.families(3).items():
            family = str(kv_dtype), int(head_dim), int(window)
            heads, kv_heads, batch, prefix = keys.T[:, :, None]
            base_s = self._base_s(family, heads, kv_heads, batch, prefix, table.knots)
            ratios = without_gaps(table.knots, np.log(latency_s / base_s))
            rows = self._rows[family] = sorted({(row[2], row[3]) for row in keys.tolist()})
            shapes = values[family] = {}
            for (*shape, of_batch, of_prefix), ratio in zip(keys.tolist(), ratios, strict=True):
                if tuple(shape) not in shapes:
                    shapes[tuple(shape)] = np.full((len(rows), len(table.knots)), np.nan)
                shapes[tuple(shape)][rows.index((of_batch, of_prefix))] = ratio
        self._grids = {family: ShapeGrid(of_family) for family, of_family in values.items()}
        self._fewest = {family: min(of_family, key=lambda shape: shape) for family, of_family in values.items()}

    @property
    def families(self) -> tuple[_Family, ...]:
        """The (KV dtype, head dimension, window) that were measured; window 0 is full attention."""
        return tuple(sorted(self._grids))

    def price(self, kv_dtype: str, heads: int, kv_heads: int, head_dim: int, window: int = 0) -> ContextPrice | None:
        """Attention of that shape; None if KV dtype and head dimension were not measured together, at least in full."""
        family = (kv_dtype, head_dim, window)
        of_full = window > 0 and family not in self._grids
        if of_full:
            family = (kv_dtype, head_dim, 0)
        grid = self._grids.get(family)
        if grid is None:
            return None
        found = grid.at(heads, kv_heads)
        rows = self._rows[family]
        by_prefix = any(prefix for _, prefix in rows)
        curves = {
            (prefix if by_prefix else batch): self._curve(family, (heads, kv_heads), (batch, prefix), ratio)
            for (batch, prefix), ratio in zip(rows, found.values, strict=True)
            if not np.isnan(ratio).all()
        }
        fewest = self._fewest[family]
        sweep = self._curve(family, fewest, rows[0], grid.at(*fewest).values[0])
        levels = tuple(sorted(curves))
        ordered = tuple(curves[level] for level in levels)
        source = Source.CALIBRATED
        return ContextPrice(
            levels, ordered, by_prefix, sweep, window, of_full, source, self._errors, found.inside, self._apart
        )

    def _curve(self, family: _Family, shape: tuple[int, int], row: _Row, ratio: NDArray[np.float64]) -> Curve:
        known = ~np.isnan(ratio)
        return Curve.along(lambda tokens: self._base_s(family, *shape, *row, tokens), self._tokens[known], ratio[known])

    def _base_s(
        self,
        family: _Family,
        heads: Number,
        kv_heads: Number,
        batch: Number,
        prefix: Number,
        tokens: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Prompts of the total length less, for a chunk over a prefix, prompts of its prefix."""
        kv_dtype, head_dim, window = family
        shape = kv_dtype, heads, kv_heads, head_dim, window, batch
        flops, moved = context_work(*shape, tokens + prefix)
        return np.asarray(self._rates[kv_dtype].seconds(flops - context_work(*shape, prefix)[0], moved))
