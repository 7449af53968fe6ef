"""Which cells a sweep consists of: all combinations of values, or points drawn from ranges."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, log
from pathlib import Path
from typing import Any

from scipy.stats import qmc

from experiments.comparison.fingerprint import Fingerprints
from experiments.settings import with_settings, worded
from simcore.core.errors import InputError, Phrase
from simcore.scenario import parse_scenario
from simcore.scenario.paths import with_absolute_paths
from simcore.scenario.plain_data import plain_data

_NUMBER = r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"(log:)?({_NUMBER})\.\.({_NUMBER})", re.ASCII)
_MOST_CELLS = 1_000_000
ROWS_VERSION = 1
"""Of the rows that cells are kept as; others are not found again."""
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from ``low`` to ``high``, whole ones where both are; spread evenly, or by their logarithms."""

    low: float
    high: float
    logarithmic: bool
    whole: bool

    def at(self, level: float) -> float | int:
        """The number at a level from 0 to 1."""
        low, high = (self.low, self.high + 1) if self.whole else (self.low, self.high)
        value = exp(log(low) + level * log(high / low)) if self.logarithmic else low + level * (high - low)
        return min(int(value), int(self.high)) if self.whole else float(f"{value:.6g}")


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a sweep: the values of the varied keys, the scenario in full, and a hash of all it depends on."""

    setting: Mapping[str, Any]
    document: Document
    fingerprint: str


def cells_of(
    document: Mapping[str, Any],
    base_dir: Path,
    vary: Mapping[str, Sequence[Any]],
    points: int | None = None,
    seeds: int = 1,
    mode: str = "run",
) -> list[Cell]:
    """The cells of a sweep, in order: every combination, or ``points`` that a Latin hypercube draws by the seed.

    ``vary`` has a list of values for each key, or one text such as ``5..50`` or ``log:1..100`` for a range, which
    takes ``points``. Each cell runs with ``seeds`` seeds, counted up from the scenario's. ``mode`` says what is done
    with a cell, as that decides what comes of it. Raises ``InputError`` for whatever is wrong with this or a scenario.
    """
    document = plain_data(document, "the scenario")
    axes = {key: _axis(key, values, points) for key, values in plain_data(vary, "--vary").items()}
    if not axes:
        raise InputError("--vary", Phrase("missing"), "at least one, such as KEY=VALUE,VALUE")
    if seeds < 1:
        raise InputError("--seeds", seeds, "a whole number of at least 1")
    first = parse_scenario(document).seed
    settings = _grid(axes) if points is None else _hypercube(axes, points, first)
    if len(settings) * seeds > _MOST_CELLS:
        raise InputError("--vary", f"{len(settings) * seeds:,} cells", f"at most {_MOST_CELLS:,}")
    fingerprints = Fingerprints()
    cells = []
    for setting in settings:
        changed = with_settings(document, setting)
        for seed in range(first, first + seeds):
            complete = with_absolute_paths(parse_scenario({**changed, "seed": seed}), base_dir).document()
            own = {**setting, "seed": seed} if seeds > 1 else setting
            cells.append(Cell(own, complete, f"{mode}{ROWS_VERSION}-{fingerprints.of(complete)}"))
    return cells


def _axis(key: str, values: Any, points: int | None) -> list[Any] | Range:
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise InputError(f"--vary {key}", values, "a list of values")
    if key == "seed":
        raise InputError("--vary", key, "a key other than seed, of which --seeds gives several")
    found = _RANGE.fullmatch(values[0]) if len(values) == 1 and isinstance(values[0], str) else None
    if found is None:
        words = [worded(value) for value in values]
        if len(set(words)) < len(words):
            raise InputError(f"--vary {key}", ",".join(words), "each value once")
        return list(values)
    low, high = float(found[2]), float(found[3])
    if points is None:
        raise InputError(f"--vary {key}", values[0], "a list of values, or --random N beside a range")
    if not low < high or (found[1] and low <= 0):
        raise InputError(f"--vary {key}", values[0], "a range LOW..HIGH, LOW above 0 if it is logarithmic")
    return Range(low, high, bool(found[1]), all(text.lstrip("+-").isdecimal() for text in found.groups()[1:]))


def _grid(axes: Mapping[str, list[Any] | Range]) -> list[dict[str, Any]]:
    lists = [values for values in axes.values() if isinstance(values, list)]
    return [dict(zip(axes, values, strict=True)) for values in product(*lists)]


def _hypercube(axes: Mapping[str, list[Any] | Range], points: int, seed: int) -> list[dict[str, Any]]:
    """Each axis is cut into as many equal parts as there are points, and each part has one (McKay et al., 1979)."""
    if not 1 <= points <= _MOST_CELLS:
        raise InputError("--random", points, f"a whole number from 1 to {_MOST_CELLS:,}")
    levels = qmc.LatinHypercube(len(axes), rng=seed).random(points)
    return [
        {key: _value_at(axis, float(level)) for (key, axis), level in zip(axes.items(), row, strict=True)}
        for row in levels
    ]


def _value_at(axis: list[Any] | Range, level: float) -> Any:
    return axis.at(level) if isinstance(axis, Range) else axis[min(int(level * len(axis)), len(axis) - 1)]
