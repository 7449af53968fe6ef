"""The bins of time that figures have, and what falls into them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simcore.core.result import Result

FloatArray = NDArray[np.float64]

_FINE_BINS = 400
_EVENTS_PER_BIN, _FEWEST_BINS, _MOST_BINS = 25, 20, 240


def run_end_s(result: Result) -> float:
    """When the run ended, in seconds from its start; 0.0 if nothing happened in it."""
    times = [result.steps["end_s"], result.requests["arrival_s"], result.requests["end_s"]]
    known = np.concatenate([column[np.isfinite(column)] for column in times])
    return float(known.max(initial=result.summary["window"]["end_s"] or 0.0))


def fine_edges(end_s: float) -> FloatArray:
    """Edges of bins for what is known at every instant, such as the length of a queue."""
    return np.linspace(0.0, end_s, _FINE_BINS + 1)


def coarse_edges(end_s: float, events: int) -> FloatArray:
    """Edges of bins wide enough that counts of so many events are no mere noise."""
    bins = min(max(events // _EVENTS_PER_BIN, _FEWEST_BINS), _MOST_BINS)
    return np.linspace(0.0, end_s, bins + 1)


def events_per_s(times_s: NDArray[Any], edges_s: FloatArray) -> FloatArray:
    """Events in each bin per second of it; NaN in ``times_s`` is an event that never came."""
    return np.histogram(times_s[~np.isnan(times_s)], bins=edges_s)[0] / np.diff(edges_s)


def mean_present(from_s: NDArray[Any], until_s: NDArray[Any], edges_s: FloatArray) -> FloatArray:
    """Mean over each bin of how many were present, each from one time until another; exact, whatever the bins."""
    present_s = _seconds_since(from_s, edges_s) - _seconds_since(until_s, edges_s)
    means: FloatArray = np.diff(present_s) / np.diff(edges_s)
    return means


def _seconds_since(times_s: NDArray[Any], edges_s: FloatArray) -> FloatArray:
    """At each edge, the seconds since each of the times that lie before it, added up."""
    ordered = np.sort(times_s)
    passed = np.searchsorted(ordered, edges_s, side="right")
    total: FloatArray = passed * edges_s - np.concatenate(([0.0], np.cumsum(ordered)))[passed]
    return total
