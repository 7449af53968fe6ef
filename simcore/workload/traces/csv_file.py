"""Rows of a CSV file with a header."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from simcore.core.errors import FileError
from simcore.workload.traces.text import opened


def column_names(path: Path) -> list[str]:
    """The header. Raises FileError for an empty or unreadable file."""
    with opened(path) as text:
        try:
            header = next(csv.reader(text, strict=True), None)
        except csv.Error as error:
            raise FileError(path, f"is not valid CSV ({error})", 1) from error
        if not header:
            raise FileError(path, "is empty, expected a line of column names")
        return [name.strip() for name in header]


def rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[object]]]:
    """Line number and the values of ``columns``, row by row; blank lines are passed over.

    Raises FileError naming the line where a row has more or fewer fields than the header.
    """
    names = column_names(path)
    places = [names.index(name) for name in columns]
    with opened(path) as text:
        reader = csv.reader(text, strict=True)
        try:
            next(reader)
            for row in reader:
                if len(row) != len(names):
                    if not row:
                        continue
                    raise FileError(path, f"has {len(row)} fields, expected {len(names)}", reader.line_num)
                yield reader.line_num, [row[place] for place in places]
        except csv.Error as error:
            raise FileError(path, f"is not valid CSV ({error})", reader.line_num) from error
