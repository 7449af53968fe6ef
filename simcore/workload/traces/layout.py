"""Finding out how a trace file is laid out: its kind, its columns, and whether it has arrival times."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from simcore.core.errors import FileError, InputError, UnknownNameError, nearest_name
from simcore.workload.traces import csv_file, json_file, jsonl_file, parquet_file
from simcore.workload.traces.formats import FORMATS, Columns, FileKind

Rows = Iterator[tuple[int, list[object]]]
_LISTED = 20
"""Columns that an error names, of a file that has more."""

_ROWS: dict[FileKind, Callable[[Path, Sequence[str]], Rows]] = {
    "csv": csv_file.rows,
    "jsonl": jsonl_file.rows,
    "json": json_file.rows,
    "parquet": parquet_file.rows,
}
_COLUMN_NAMES: dict[FileKind, Callable[[Path], list[str]]] = {
    "csv": csv_file.column_names,
    "jsonl": jsonl_file.column_names,
    "json": json_file.column_names,
    "parquet": parquet_file.column_names,
}


@dataclass(frozen=True, slots=True)
class Layout:
    """How to read one file."""

    format: str
    kind: FileKind
    columns: Columns
    has_arrivals: bool
    has_hash_ids: bool = False

    def rows(self, path: Path) -> Rows:
        """The place of each row, and its values as written.

        They are prompt length, output length, arrival and hash ids if the file has them, and what
        ``Columns.of_senders`` names.
        """
        names = [self.columns.prompt_tokens, self.columns.output_tokens]
        if self.has_arrivals:
            names.append(self.columns.arrival)
        if self.has_hash_ids and self.columns.hash_ids is not None:
            names.append(self.columns.hash_ids)
        names += self.columns.of_senders().values()
        where = FORMATS[self.format].where
        for place, values in _ROWS[self.kind](path, [*names, *(column for column, _ in where)]):
            kept = len(names)
            if all(value == wanted for value, (_, wanted) in zip(values[kept:], where, strict=True)):
                yield place, values[:kept]

    def error(self, path: Path, problem: str, place: int) -> FileError:
        """What is wrong with the row at ``place``."""
        if self.kind in ("parquet", "json"):
            return FileError(path, f"row {place}: {problem}")
        return FileError(path, problem, place)


def find_layout(path: Path, format: str = "auto", columns: Columns | None = None) -> Layout:
    """The layout of ``path``. Raises FileError where a column is missing or nothing known fits, naming what is near."""
    if format not in ("auto", *FORMATS):
        raise UnknownNameError("format", format, ["auto", *FORMATS])
    if columns is not None:
        if format not in ("auto", "csv", "jsonl", "parquet"):
            raise InputError("columns", "given", f"nothing, since format {format} has columns of its own")
        kind = FORMATS[format].kind if format != "auto" else _kind_of(path)
        format = kind
    elif format == "auto":
        kind = _kind_of(path)
        format, columns = _recognised(path, kind)
    else:
        kind, columns = FORMATS[format].kind, FORMATS[format].columns
    found = _COLUMN_NAMES[kind](path)
    used = {columns.arrival, columns.prompt_tokens, columns.output_tokens, *columns.of_senders().values()}
    for name in (name for name in found if name in used or name == columns.hash_ids):
        if found.count(name) > 1:
            raise FileError(path, f"has the column {name!r} {_times(found.count(name))}, expected it once")
    needed = [columns.prompt_tokens, columns.output_tokens, *columns.of_senders().values()]
    if format == kind and columns.arrival != Columns().arrival:
        needed.append(columns.arrival)  # named by the user, so not a file of lengths alone
    if format == kind and columns.hash_ids is not None:
        needed.append(columns.hash_ids)
    for name in needed:
        if name not in found:
            nearest = nearest_name(name, found)
            hint = f" (did you mean {nearest!r}?)" if nearest else ""
            raise FileError(path, f"has no column {name!r} of format {format}{hint}; it has {_listed(found)}")
    return Layout(format, kind, columns, columns.arrival in found, columns.hash_ids in found)


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


def _listed(names: Sequence[str]) -> str:
    """Names of columns; of many, the first."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _kind_of(path: Path) -> FileKind:
    ending = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    for kind in _ROWS:
        if kind == ending and not (kind == "parquet" and path.suffix == ".gz"):
            return kind
    expected = "a name that ends in .csv, .csv.gz, .json, .json.gz, .jsonl, .jsonl.gz or .parquet, or a stated format"
    raise FileError(path, f"is of no known kind, expected {expected}")


def _recognised(path: Path, kind: FileKind) -> tuple[str, Columns]:
    """The format whose columns the file has, or else most of."""
    found = set(_COLUMN_NAMES[kind](path))

    def fit(name: str) -> tuple[bool, int]:
        columns, marks = FORMATS[name].columns, FORMATS[name].marks
        lengths = {columns.prompt_tokens, columns.output_tokens}
        return lengths | marks <= found, len(found & {columns.arrival, *lengths, *marks})

    formats = [name for name, known in FORMATS.items() if known.kind == kind]
    best = max(formats, key=fit)
    if fit(best)[1] == 0:
        expected = f"those of a known format ({', '.join(formats)}), or 'columns' that name them"
        raise FileError(path, f"has the columns {_listed(sorted(found))}, expected {expected}")
    return best, FORMATS[best].columns
