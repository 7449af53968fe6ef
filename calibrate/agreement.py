"""How far two profiles are apart: their prices at the shapes that both measured, kernel by kernel."""

from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simcore.core.errors import FileError
from simcore.cost.calibrated.document import PROFILE_FILE, read_document
from simcore.cost.calibrated.profile import KEYS
from simcore.cost.calibrated.table import KernelTable, parse_table

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Apart:
    """Of one kernel kind in two profiles: ratios of the second's prices to the first's over so many ``points``.

    ``median`` and ``p90`` are of the absolute relative differences, ``bias`` the median ratio less 1.
    """

    kind: str
    points: int
    median: float
    p90: float
    bias: float


def agreement(first: Traversable | Path, second: Traversable | Path) -> tuple[list[Apart], list[str]]:
    """The kinds that both folders have, and those of one alone. Raises ``FileError`` where nothing is in common."""
    ours, theirs = read_document(first, KEYS), read_document(second, KEYS)
    found = []
    for kind in ours.tables:
        if kind in theirs.tables:
            tables = (parse_table(folder / f"{kind}.csv", KEYS[kind]) for folder in (first, second))
            apart = _apart(kind, *tables)
            if apart is not None:
                found.append(apart)
    alone = sorted(ours.tables.keys() ^ theirs.tables.keys())
    if not found:
        raise FileError(str(second / PROFILE_FILE), f"has no shape of a kernel that {first} has too")
    return found, alone


def _apart(kind: str, first: KernelTable, second: KernelTable) -> Apart | None:
    """At every knot of either in rows of both, between their first and last; straight lines in logarithms between."""
    rows = dict(zip(second.rows, second.latency_s, strict=True))
    logs: list[float] = []
    for row, latency_s in zip(first.rows, first.latency_s, strict=True):
        other = rows.get(row)
        if other is None:
            continue
        (x1, y1), (x2, y2) = _known(first, latency_s), _known(second, other)
        at = np.union1d(x1, x2)
        at = at[(at >= max(x1[0], x2[0])) & (at <= min(x1[-1], x2[-1]))]
        logs += (np.interp(at, x2, y2) - np.interp(at, x1, y1)).tolist()
    if not logs:
        return None
    ratios = np.exp(logs)
    off = np.abs(ratios - 1)
    quantiles = float(np.median(off)), float(np.quantile(off, 0.9)), float(np.median(ratios) - 1)
    return Apart(kind, len(logs), *quantiles)


def _known(table: KernelTable, latency_s: Floats) -> tuple[Floats, Floats]:
    known = ~np.isnan(latency_s)
    return np.log(table.knots[known]), np.log(latency_s[known])
