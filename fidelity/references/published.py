"""Files of published figures: one row per figure, with what was run in columns beside it."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from simcore.core.errors import FileError
from simcore.workload.traces.csv_file import column_names, rows

_COLUMNS = (
    "engine",
    "gpu",
    "model",
    "precision",
    "tp",
    "isl",
    "osl",
    "concurrency_or_rate",
    "metric",
    "value",
    "unit",
    "notes",
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One row, as it stands but for ``value``; ``line`` is its place in ``path``."""

    path: Path
    line: int
    engine: str
    gpu: str
    model: str
    precision: str
    tensor_parallel: str
    prompt_tokens: str
    output_tokens: str
    load: str
    metric: str
    value: float
    unit: str
    notes: str

    def whole(self, text: str, what: str) -> int:
        """A whole number out of a column; raises ``FileError`` naming the line."""
        if not text.isdecimal():
            raise FileError(self.path, f"{what} is {text!r}, expected a whole number", self.line)
        return int(text)


def read_figures(path: Path) -> Iterator[Figure]:
    """All rows; raises ``FileError``, naming file and line, for one that cannot be read."""
    missing = [name for name in _COLUMNS if name not in column_names(path)]
    if missing:
        raise FileError(path, f"has no column {missing[0]!r}, expected a file of published figures")
    for line, values in rows(path, _COLUMNS):
        text = dict(zip(_COLUMNS, (str(value).strip() for value in values), strict=True))
        yield Figure(
            path,
            line,
            text["engine"],
            text["gpu"],
            text["model"],
            text["precision"],
            text["tp"],
            text["isl"],
            text["osl"],
            text["concurrency_or_rate"],
            text["metric"],
            _value(path, line, text["value"]),
            text["unit"],
            text["notes"],
        )


def _value(path: Path, line: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not (isfinite(value) and value > 0):
        raise FileError(path, f"value is {text!r}, expected a number greater than 0", line)
    return value
