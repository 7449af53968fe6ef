"""Tables of results that grow row by row, so that an interruption loses no more than the latest."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def start(name: str, columns: Sequence[str]) -> Path:
    """A new table with its head."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / name
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerow(columns)
    return path


def resumed(name: str, columns: Sequence[str]) -> tuple[Path, int]:
    """The table as it is, or a new one, and how many rows it has."""
    path = RESULTS / name
    if not path.is_file():
        return start(name, columns), 0
    with path.open(newline="", encoding="utf-8") as file:
        return path, len(list(csv.DictReader(file)))


def add(path: Path, columns: Sequence[str], row: Mapping[str, Any]) -> None:
    """One more row, which is printed too."""
    print(dict(row), flush=True)
    with path.open("a", newline="", encoding="utf-8") as file:
        csv.DictWriter(file, columns, lineterminator="\n").writerow(row)
