"""Carry out the cells of a sweep that are not in its folder yet, and write the table of all."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from experiments.runners import Runner, as_they_come
from experiments.settings import label_of, worded
from experiments.sweep import journal
from experiments.sweep.cell_run import CellTask, Row, perform
from experiments.sweep.design import Cell
from simcore.core.errors import ServetwinError
from simcore.core.outputs import FolderKind, begins_with, check_folder, replacing

TABLE, CELLS = "sweep.parquet", "cells.jsonl"
SCHEMA_VERSION = 1
SWEEP_FOLDER = FolderKind(
    "a sweep", (), {TABLE: begins_with(b"PAR1"), CELLS: lambda path: not path.stat().st_size or _begins(path)}
)
Progress = Callable[[Cell], None]


def _begins(path: Path) -> bool:
    return begins_with(b'{"fingerprint": "')(path)


def check_sweep_folder(folder: Path) -> None:
    """Raise ``FileError`` unless a sweep can be written to ``folder``: missing, empty, or another sweep's."""
    check_folder(folder, SWEEP_FOLDER)


def carry_out(
    cells: Sequence[Cell], folder: Path, runner: Runner, to_knee: bool = False, progress: Progress | None = None
) -> tuple[list[Row], int]:
    """Run the cells that ``folder`` does not hold yet and write its table; returns all rows and how many it did hold.

    Whatever ends this early, kill -9 included, leaves the finished cells in place. Raises the error of the first cell
    where none could be run.
    """
    tell = progress or (lambda cell: None)
    with journal.opened(folder / CELLS) as kept:
        missing = [cell for cell in cells if cell.fingerprint not in kept.rows]
        there = len(cells) - len(missing)
        for cell in cells:
            if cell.fingerprint in kept.rows:
                tell(cell)
        tasks = [CellTask(cell.document, to_knee) for cell in missing]
        with closing(as_they_come(runner, perform, tasks, lambda task: "a cell of the sweep")) as done:
            for place, rows in done:
                kept.keep(missing[place].fingerprint, rows)
                tell(missing[place])
        rows = [
            {"cell": number} | _shown(cell.setting) | row
            for number, cell in enumerate(cells)
            for row in kept.rows[cell.fingerprint]
        ]
    if all("error" in row for row in rows):
        raise ServetwinError(f"No cell of the sweep could be run. {label_of(cells[0].setting)}: {rows[0]['error']}")
    write_table(rows, folder / TABLE)
    return rows, there


def _shown(setting: Mapping[str, Any]) -> Row:
    """The values of a cell as a table can hold them: what is no plain value as text."""
    return {
        key: value if isinstance(value, bool | int | float | str) else worded(value) for key, value in setting.items()
    }


def write_table(rows: Sequence[Row], path: Path) -> None:
    """The rows as Parquet, a column for each name that any row has; the same rows make the same bytes.

    A column of numbers is of floats unless all are whole; one of mixed kinds is of text.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _column([row.get(name) for row in rows]) for name in names}
    table = pa.table(columns).replace_schema_metadata({"schema_version": json.dumps(SCHEMA_VERSION)})
    with replacing(path, begins_with(b"PAR1")) as beside:
        parquet.write_table(table, beside)


def _column(values: list[Any]) -> pa.Array:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int}:
        return pa.array(values, pa.int64())
    if kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    return pa.array([None if value is None else worded(value) for value in values], pa.string())
