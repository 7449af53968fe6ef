"""The tables of a profile: CSV files whose rows are shapes and whose columns are knots, in microseconds."""

import csv
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from math import isnan, nan
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from simcore.core.bounds import MOST_COUNT, MOST_DIGITS
from simcore.core.errors import FileError, shortened
from simcore.core.files import read_text

Key = str | int
TEXT_KEYS = frozenset({"phase", "dtype", "kv_dtype", "distribution", "operation", "implementation", "operator"})
"""The columns that hold names; all others that tell rows apart hold whole numbers."""
_ZERO_KEYS = frozenset({"window", "prefix"})
"""The columns whose numbers may be 0: no window, no prefix."""
_MOST_KNOT = 1e15
_LEAST_US, _MOST_US = 1e-6, 1e9
"""A launch takes longer than a picosecond and no quarter of an hour."""


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
    try:
        knots = _knots(shown, next(lines, []), keys)
        rows = [_Row(shown, lines.line_num, cells, keys) for cells in lines]
    except csv.Error as error:
        raise FileError(shown, f"is not valid CSV ({error})", lines.line_num) from error
    if not rows:
        raise FileError(shown, "no rows")
    latencies_us: dict[tuple[Key, ...], list[float]] = {}
    checked: tuple[set[str], ...] = tuple(set() for _ in keys)
    for row in rows:
        row.check(len(knots), names, checked)
        key = row.key
        if key in latencies_us:
            raise FileError(shown, f"a second row of the same {', '.join(keys)}", row.line)
        latencies_us[key] = row.latencies_us()
    return KernelTable(keys, list(latencies_us), knots, np.array(list(latencies_us.values())) * 1e-6)


def _knots(shown: str, header: list[str], keys: tuple[str, ...]) -> NDArray[np.float64]:
    if tuple(header[: len(keys)]) != keys or len(header) == len(keys):
        raise FileError(shown, f"the columns are not {', '.join(keys)} and then knots", 1)
    try:
        knots = np.array([float(text) for text in header[len(keys) :]])
    except ValueError:
        raise FileError(shown, "a knot is not a number", 1) from None
    if not np.all((knots > 0) & (knots <= _MOST_KNOT)):
        raise FileError(shown, f"a knot is not greater than 0 and at most {_MOST_KNOT:g}", 1)
    if np.any(np.diff(knots) <= 0):
        raise FileError(shown, "the knots do not ascend", 1)
    return knots


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of a table, not yet checked."""

    shown: str
    line: int
    cells: list[str]
    keys: tuple[str, ...]

    @property
    def key(self) -> tuple[Key, ...]:
        named = zip(self.keys, self.cells, strict=False)
        return tuple([cell if name in TEXT_KEYS else int(cell) for name, cell in named])

    def check(self, knots: int, names: Mapping[str, Collection[str]], checked: tuple[set[str], ...]) -> None:
        """Raise ``FileError`` for a cell that does not fit; what is ``checked`` of each column was found to fit."""
        columns = len(self.keys) + knots
        if len(self.cells) != columns:
            raise FileError(self.shown, f"{len(self.cells)} columns where the first line has {columns}", self.line)
        for name, cell, fit in zip(self.keys, self.cells, checked, strict=False):
            if cell in fit:
                continue
            if name in names and cell not in names[name]:
                expected = f"one of {', '.join(sorted(names[name]))}" if names[name] else "one that rates are stated of"
            elif name not in TEXT_KEYS and not _is_count(cell, 0 if name in _ZERO_KEYS else 1):
                expected = f"a whole number of at most {MOST_COUNT}"
            else:
                fit.add(cell)
                continue
            raise FileError(self.shown, f"{name} is {shortened(cell)!r}, expected {expected}", self.line)

    def latencies_us(self) -> list[float]:
        cells = self.cells[len(self.keys) :]
        try:
            latencies = [float(cell) if cell else nan for cell in cells]
            known = list(map(float, filter(None, cells)))
        except ValueError:
            raise FileError(self.shown, "a latency is not a number", self.line) from None
        if not known or not (min(known) >= _LEAST_US and max(known) <= _MOST_US) or any(map(isnan, known)):
            expected = f"none is given, or one is not from {_LEAST_US:g} to {_MOST_US:g} microseconds"
            raise FileError(self.shown, f"of its latencies {expected}", self.line)
        return latencies


def _is_count(cell: str, least: int) -> bool:
    """Whether it is a whole number that can be counted with."""
    return cell.isascii() and cell.isdecimal() and len(cell) <= MOST_DIGITS and least <= int(cell) <= MOST_COUNT
