"""The tables of a profile: CSV files whose rows are shapes and whose columns are knots, in microseconds."""

import csv
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from math import nan
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from simcore.core.errors import FileError
from simcore.core.files import read_text

Key = str | int
TEXT_KEYS = frozenset({"phase", "dtype", "kv_dtype", "distribution", "operation", "implementation", "operator"})
"""The columns that hold names; all others that tell rows apart hold whole numbers."""


def without_gaps(knots: NDArray[np.float64], ratios: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows over ``knots`` whose NaN between known values are filled by straight lines over the knots' logarithms.

    Tables leave out knots that such lines find. NaN before a row's first and after its last known value stays: nothing
    was measured there.
    """
    count = ratios.shape[1]
    places = np.where(np.isnan(ratios), -1, np.arange(count))
    below = np.maximum.accumulate(places, axis=1)
    above = np.minimum.accumulate(np.where(places < 0, count, places)[:, ::-1], axis=1)[:, ::-1]
    outside = (below < 0) | (above == count)
    below, above = np.where(outside, 0, below), np.where(outside, 0, above)
    logs = np.log(knots)
    width = logs[above] - logs[below]
    weight = np.divide(logs - logs[below], width, out=np.zeros_like(width), where=width > 0)
    rows = np.arange(len(ratios))[:, None]
    return np.where(outside, np.nan, (1.0 - weight) * ratios[rows, below] + weight * ratios[rows, above])


@dataclass(frozen=True, slots=True)
class KernelTable:
    """Latencies by shape and knot. ``keys`` names what tells rows apart; NaN stands where nothing was measured."""

    keys: tuple[str, ...]
    rows: list[tuple[Key, ...]]
    knots: NDArray[np.float64]
    latency_s: NDArray[np.float64]

    def families(self, keys: int) -> dict[tuple[Key, ...], tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Rows whose first ``keys`` keys are equal, as their other keys, all whole numbers, and their latencies."""
        places: defaultdict[tuple[Key, ...], list[int]] = defaultdict(list)
        for place, row in enumerate(self.rows):
            places[row[:keys]].append(place)
        return {
            family: (np.array([self.rows[place][keys:] for place in found], dtype=np.int64), self.latency_s[found])
            for family, found in places.items()
        }


def parse_table(
    file: Traversable | Path, keys: tuple[str, ...], names: Mapping[str, Collection[str]] = MappingProxyType({})
) -> KernelTable:
    """Read a table whose columns are ``keys`` and then knots; ``names`` are those that a column may hold.

    Raises ``FileError``, naming file and line, for columns, numbers or rows that do not fit.
    """
    shown = str(file)
    lines = csv.reader(read_text(file, "kernel table", shown).splitlines())
    header = next(lines, [])
    if tuple(header[: len(keys)]) != keys or len(header) == len(keys):
        raise FileError(shown, f"the columns are not {', '.join(keys)} and then knots", 1)
    try:
        knots = np.array([float(text) for text in header[len(keys) :]])
    except ValueError:
        raise FileError(shown, "a knot is not a number", 1) from None
    if np.any(np.diff(knots) <= 0):
        raise FileError(shown, "the knots do not ascend", 1)
    rows: list[tuple[Key, ...]] = []
    latencies = []
    line_numbers = []
    for cells in lines:
        if len(cells) != len(header):
            raise FileError(shown, f"{len(cells)} columns where the first line has {len(header)}", lines.line_num)
        rows.append(tuple(int(cell) if cell.isdecimal() else cell for cell in cells[: len(keys)]))
        try:
            latencies.append([float(cell) if cell else nan for cell in cells[len(keys) :]])
        except ValueError:
            raise FileError(shown, "a latency is not a number", lines.line_num) from None
        line_numbers.append(lines.line_num)
    if not rows:
        raise FileError(shown, "no rows")
    for name, column in zip(keys, zip(*rows, strict=True), strict=True):
        found = set(column)
        if name in names:
            wrong_cells, expected = found.difference(names[name]), f"one of {', '.join(names[name])}"
        elif name not in TEXT_KEYS:
            wrong_cells, expected = {cell for cell in found if isinstance(cell, str)}, "a whole number"
        else:
            continue
        if wrong_cells:
            place = next(place for place, cell in enumerate(column) if cell in wrong_cells)
            raise FileError(shown, f"{name} is {column[place]!r}, expected {expected}", line_numbers[place])
    if len(set(rows)) < len(rows):
        place = next(place for place, row in enumerate(rows) if row in rows[:place])
        raise FileError(shown, f"a second row of the same {', '.join(keys)}", line_numbers[place])
    latency_us = np.array(latencies)
    wrong = (latency_us <= 0).any(axis=1) | np.isnan(latency_us).all(axis=1)
    if wrong.any():
        line_number = line_numbers[int(wrong.argmax())]
        raise FileError(shown, "a latency is not positive, or none is given", line_number)
    return KernelTable(keys, rows, knots, latency_us * 1e-6)
