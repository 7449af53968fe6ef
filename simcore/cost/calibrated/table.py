"""The tables of a profile: CSV files whose rows are shapes and whose columns are knots, in microseconds."""

import csv
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from math import nan
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

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
        rows = [_Row(lines.line_num, cells) for cells in lines]
    except csv.Error as error:
        raise FileError(shown, f"is not valid CSV ({error})", lines.line_num) from error
    if not rows:
        raise FileError(shown, "no rows")
    columns = len(keys) + len(knots)
    for row in rows:
        if len(row.cells) != columns:
            raise FileError(shown, f"{len(row.cells)} columns where the first line has {columns}", row.line)
    found = _keys_of(shown, rows, keys, names)
    return KernelTable(keys, found, knots, _latencies_us(shown, rows, len(keys)) * 1e-6)


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


class _Row(NamedTuple):
    """A line of a table, and its number."""

    line: int
    cells: list[str]


def _keys_of(
    shown: str, rows: Sequence[_Row], keys: Sequence[str], names: Mapping[str, Collection[str]]
) -> list[tuple[Key, ...]]:
    """What tells the rows apart, column by column, as each column holds few different cells."""
    columns: list[list[Key]] = []
    for place, name in enumerate(keys):
        column = [row.cells[place] for row in rows]
        read: dict[str, Key] = {}
        for cell in dict.fromkeys(column):
            expected = _expected_instead(name, cell, names)
            if expected is not None:
                line = rows[column.index(cell)].line
                raise FileError(shown, f"{name} is {shortened(cell)!r}, expected {expected}", line)
            read[cell] = cell if name in TEXT_KEYS else int(cell)
        columns.append([read[cell] for cell in column])
    found = list(zip(*columns, strict=True))
    if len(set(found)) < len(found):
        seen: set[tuple[Key, ...]] = set()
        for key, row in zip(found, rows, strict=True):
            if key in seen:
                raise FileError(shown, f"a second row of the same {', '.join(keys)}", row.line)
            seen.add(key)
    return found


def _expected_instead(name: str, cell: str, names: Mapping[str, Collection[str]]) -> str | None:
    """What a column should hold where it holds a cell; None if that fits."""
    if name in names and cell not in names[name]:
        return f"one of {', '.join(sorted(names[name]))}" if names[name] else "one that rates are stated of"
    if name not in TEXT_KEYS and not _is_count(cell, 0 if name in _ZERO_KEYS else 1):
        return f"a whole number of at most {MOST_COUNT}"
    return None


def _latencies_us(shown: str, rows: Sequence[_Row], keys: int) -> NDArray[np.float64]:
    """The latencies of all rows, which follow so many keys; NaN where none is given."""
    read = []
    for line, cells in rows:
        try:
            read.append([float(cell) if cell else nan for cell in cells[keys:]])
        except ValueError:
            raise FileError(shown, "a latency is not a number", line) from None
    latencies_us = np.array(read)
    given = np.array([len(cells) - cells.count("") for _, cells in rows]) - keys
    fit = ((latencies_us >= _LEAST_US) & (latencies_us <= _MOST_US)).sum(axis=1)
    faulty = np.flatnonzero((fit < given) | (fit == 0))
    if len(faulty):
        expected = f"none is given, or one is not from {_LEAST_US:g} to {_MOST_US:g} microseconds"
        raise FileError(shown, f"of its latencies {expected}", rows[faulty[0]].line)
    return latencies_us


def _is_count(cell: str, least: int) -> bool:
    """Whether it is a whole number that can be counted with."""
    return cell.isascii() and cell.isdecimal() and len(cell) <= MOST_DIGITS and least <= int(cell) <= MOST_COUNT
