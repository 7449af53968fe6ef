"""From rows of steps to a few hundred equal bins of time, exactly: every row counts for the seconds it lasts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simcore.core.result import Columns, Result

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


def replica_count(result: Result) -> int:
    """How many replicas the run had, idle ones among them."""
    return int(result.scenario["cluster"]["replicas"])


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


class StepBins:
    """The rows of ``steps`` laid into bins of time.

    A row's value holds from its start to its end; between two rows a replica is idle and every value is 0.
    """

    def __init__(self, steps: Columns, replicas: int, edges_s: FloatArray) -> None:
        self._edges_s = edges_s
        self._shape = (replicas, len(edges_s) - 1)
        bins = self._shape[1]
        start_s, end_s = steps["start_s"], steps["end_s"]
        first = np.clip(np.searchsorted(edges_s, start_s, side="right") - 1, 0, bins - 1)
        last = np.clip(np.searchsorted(edges_s, end_s, side="left") - 1, first, bins - 1)
        self._first = steps["replica"] * bins + first
        self._head_s = np.minimum(end_s, edges_s[first + 1]) - start_s
        # Rows that reach into a later bin: few, as bins are many steps wide in all but the shortest runs.
        self._long = np.flatnonzero(last > first)
        self._last = self._first[self._long] + (last - first)[self._long]
        self._tail_s = (end_s - edges_s[last])[self._long]
        self._duration_s = end_s - start_s

    def integral(self, values: NDArray[Any]) -> FloatArray:
        """Value times seconds of every replica (row) in every bin (column)."""
        cells = self._shape[0] * self._shape[1]
        reaching = values[self._long]
        total: FloatArray = np.bincount(self._first, weights=values * self._head_s, minlength=cells).astype(np.float64)
        total += np.bincount(self._last, weights=reaching * self._tail_s, minlength=cells)
        # Whole bins between a row's first and last one: the value comes in after the first, and leaves at the last.
        change = np.bincount(self._first[self._long] + 1, weights=reaching, minlength=cells + 1)
        change -= np.bincount(self._last, weights=reaching, minlength=cells + 1)
        held = np.cumsum(change)[:cells].reshape(self._shape)
        return total.reshape(self._shape) + held * np.diff(self._edges_s)

    def mean(self, values: NDArray[Any]) -> FloatArray:
        """Mean over time of every replica (row) in every bin (column)."""
        means: FloatArray = self.integral(values) / np.diff(self._edges_s)
        return means

    def spread_per_s(self, amounts: NDArray[Any]) -> FloatArray:
        """Amounts per second, each row's amount spread evenly over its time; all replicas together."""
        rates = np.divide(amounts, self._duration_s, out=np.zeros(len(amounts)), where=self._duration_s > 0)
        total: FloatArray = self.mean(rates).sum(axis=0)
        return total

    def at_start(self, amounts: NDArray[Any]) -> FloatArray:
        """Amounts in each bin, each row's amount counted where the row starts; all replicas together."""
        cells = self._shape[0] * self._shape[1]
        counted = np.bincount(self._first, weights=amounts, minlength=cells).reshape(self._shape)
        total: FloatArray = counted.sum(axis=0)
        return total
