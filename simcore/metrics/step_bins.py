"""From rows of steps to equal bins of time: every row counts for the seconds that it lasts in each.

A row of decode steps may last for minutes, while its steps grow longer with the context and its requests fill blocks.
Steps are taken to grow evenly from the first to the last: step n of N takes f + (l - f) n / N. So the share x of steps
that are done at the share u of the row's time, and the other way round, are

    u = (2 f x + (l - f) x^2) / (f + l),    x = (f + l) u / (f + sqrt(f^2 + (l^2 - f^2) u)).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simcore.core.result import Columns

FloatArray = NDArray[np.float64]


def steps_done(first_s: FloatArray, last_s: FloatArray, time_share: FloatArray) -> FloatArray:
    """The share of a row's steps that are done at a share of its time."""
    first_s, last_s = _with_length(first_s, last_s)
    root = np.sqrt(first_s**2 * (1 - time_share) + last_s**2 * time_share)
    least = np.finfo(np.float64).tiny  # a first step of no length, at its start
    done: FloatArray = (first_s + last_s) * time_share / np.maximum(first_s + root, least)
    return done


def time_passed(first_s: FloatArray, last_s: FloatArray, steps_share: FloatArray) -> FloatArray:
    """The share of a row's time that has passed when a share of its steps is done."""
    first_s, last_s = _with_length(first_s, last_s)
    passed: FloatArray = (2 * first_s * steps_share + (last_s - first_s) * steps_share**2) / (first_s + last_s)
    return passed


def _with_length(first_s: FloatArray, last_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where neither step takes any time, both as if they took a second: such rows go evenly."""
    without = (first_s <= 0) & (last_s <= 0)
    return np.where(without, 1.0, first_s), np.where(without, 1.0, last_s)


class StepBins:
    """The rows of ``steps`` cut at the edges of bins of time.

    Between two rows a replica is idle and every value is 0. Before the first edge and after the last, rows count into
    the first and the last bin.
    """

    def __init__(self, steps: Columns, replicas: int, edges_s: FloatArray) -> None:
        self._edges_s = edges_s
        self._shape = (replicas, len(edges_s) - 1)
        bins = self._shape[1]
        start_s, end_s = steps["start_s"], steps["end_s"]
        first = np.clip(np.searchsorted(edges_s, start_s, side="right") - 1, 0, bins - 1)
        last = np.clip(np.searchsorted(edges_s, end_s, side="left") - 1, first, bins - 1)
        pieces = last - first + 1
        self._row = row = np.repeat(np.arange(len(start_s)), pieces)
        place = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        of_bin = first[row] + place
        from_s = np.where(place == 0, start_s[row], edges_s[of_bin])
        to_s = np.where(place == pieces[row] - 1, end_s[row], edges_s[of_bin + 1])
        self._cell = steps["replica"][row] * bins + of_bin
        self._lasts_s = to_s - from_s
        self._starts = steps["replica"] * bins + first
        whole_s = (end_s - start_s)[row]
        shares = [
            np.divide(at_s - start_s[row], whole_s, out=np.zeros(len(row)), where=whole_s > 0)
            for at_s in (from_s, to_s)
        ]
        first_s, last_s = steps["first_step_s"][row], steps["last_step_s"][row]
        self._done_before, self._done_after = (steps_done(first_s, last_s, share) for share in shares)
        # A row of no length is done in its one piece.
        self._done_after[whole_s <= 0] = 1.0

    def integral(self, values: NDArray[Any], values_at_end: NDArray[Any] | None = None) -> FloatArray:
        """Value times seconds of every replica (row) in every bin (column).

        With ``values_at_end`` values go from the one to the other, as steps are done.
        """
        held = values[self._row].astype(np.float64)
        if values_at_end is not None:
            held += (values_at_end - values)[self._row] * (self._done_before + self._done_after) / 2
        return self._by_cell(held * self._lasts_s)

    def mean(self, values: NDArray[Any], values_at_end: NDArray[Any] | None = None) -> FloatArray:
        """Mean over time of every replica (row) in every bin (column); as ``integral``."""
        means: FloatArray = self.integral(values, values_at_end) / np.diff(self._edges_s)
        return means

    def spread(self, amounts: NDArray[Any]) -> FloatArray:
        """Amounts of every replica (row) in every bin (column), each row's spread over its steps."""
        return self._by_cell(amounts[self._row] * (self._done_after - self._done_before))

    def at_start(self, amounts: NDArray[Any]) -> FloatArray:
        """Amounts in each bin, each row's amount counted where the row starts; all replicas together."""
        cells = self._shape[0] * self._shape[1]
        counted = np.bincount(self._starts, weights=amounts, minlength=cells).reshape(self._shape)
        total: FloatArray = counted.sum(axis=0)
        return total

    def _by_cell(self, amounts: FloatArray) -> FloatArray:
        cells = self._shape[0] * self._shape[1]
        found: FloatArray = np.bincount(self._cell, weights=amounts, minlength=cells).astype(np.float64)
        return found.reshape(self._shape)
