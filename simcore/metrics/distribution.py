"""How observations are distributed, in so few points that a figure can be drawn of them."""

import numpy as np

from simcore.core.clock import NS_PER_S
from simcore.core.result import Columns
from simcore.core.token_gaps import CountedGaps
from simcore.metrics.arrays import Float64Array, Int64Array

_POINTS = 600


def cumulative_ranks(count: int) -> Int64Array:
    """Which of ``count`` sorted values to keep: evenly spread ones, and ever closer ones in the upper tail."""
    even = np.linspace(0, count - 1, min(count, _POINTS))
    tail = count - 1 - np.geomspace(1, count, min(count, _POINTS // 2))
    return np.unique(np.clip(np.concatenate((even, tail)), 0, count - 1).astype(np.int64))


def cumulative_points(values_s: Float64Array) -> Columns:
    """Points of the cumulative distribution of some values, NaN left out: ``value_s`` ascending, ``share`` up to it.

    Between them it is linear, as percentiles are.
    """
    values_s = np.sort(values_s[~np.isnan(values_s)])
    ranks = cumulative_ranks(len(values_s)) if len(values_s) else np.zeros(0, dtype=np.int64)
    return {"value_s": values_s[ranks], "share": ranks / max(len(values_s) - 1, 1)}


def cumulative_points_of_gaps(gaps: CountedGaps) -> Columns:
    """The same for gaps of which each stands for as many as were counted."""
    upto = np.cumsum(gaps.counts)
    total = int(upto[-1]) if len(upto) else 0
    ranks = cumulative_ranks(total) if total else np.zeros(0, dtype=np.int64)
    values_ns = gaps.gaps_ns[np.searchsorted(upto, ranks, side="right")]
    return {"value_s": values_ns / NS_PER_S, "share": ranks / max(total - 1, 1)}
