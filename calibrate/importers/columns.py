"""Tables by column, with errors that name file and line (of text) or row (of a Parquet file, the first being 1)."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from simcore.errors import FileError
from simcore.files import opening

_LARGEST = 2.0**53
"""Up to here every whole number is a float of its own."""


class Columns:
    """Cells as text, by column; ``lines`` says where each row stood."""

    def __init__(self, path: Path, columns: Mapping[str, Sequence[str]], lines: Sequence[int]) -> None:
        if not lines:
            raise FileError(path, "no rows")
        self.path = path
        self._columns = columns
        self.lines = np.array(lines, dtype=np.int64)

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are called."""
        return tuple(self._columns)

    def text(self, name: str) -> NDArray[np.str_]:
        """A column as it stands."""
        if name not in self._columns:
            raise FileError(self.path, f"no column {name}; there are {', '.join(self._columns)}", 1)
        return np.array(self._columns[name])

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A column of numbers."""
        cells = self.text(name)
        try:
            return cells.astype(np.float64)
        except ValueError:
            for cell, line in zip(cells, self.lines, strict=True):
                if not _is_number(cell):
                    raise FileError(self.path, f"{name} is {str(cell)!r}, expected a number", int(line)) from None
            raise

    def whole(self, name: str, least: int | None = None) -> NDArray[np.int64]:
        """A column of whole numbers, none of them below ``least``."""
        values = self.numbers(name)
        broken = ~(np.abs(values) <= _LARGEST) | (values != np.floor(values))
        if least is not None:
            broken |= values < least
        expected = "a whole number" if least is None else f"a whole number of at least {least}"
        self.refuse(broken, name, expected)
        return values.astype(np.int64)

    def refuse(self, broken: NDArray[np.bool_], name: str, expected: str) -> None:
        """Raise ``FileError`` for the first cell of a column that is broken, if any is."""
        if broken.any():
            first = int(broken.argmax())
            cell = str(self.text(name)[first])
            raise FileError(self.path, f"{name} is {cell!r}, expected {expected}", int(self.lines[first]))


class CsvColumns(Columns):
    """The columns of a CSV file with a header. Raises ``FileError`` for what cannot be read."""

    def __init__(self, path: Path) -> None:
        try:
            # Spreadsheets begin files with a byte order mark.
            with opening(path, "CSV file"), path.open(encoding="utf-8-sig", newline="") as stream:
                reader = csv.reader(stream)
                header = [name.strip() for name in next(reader, [])]
                twice = next((name for name in header if header.count(name) > 1), None)
                if twice is not None:
                    raise FileError(path, f"two columns are called {twice!r}", 1)
                rows, lines = [], []
                for cells in reader:
                    if not cells:
                        continue
                    if len(cells) != len(header):
                        expected = f"{len(cells)} columns where the header has {len(header)}"
                        raise FileError(path, expected, reader.line_num)
                    rows.append(cells)
                    lines.append(reader.line_num)
        except (UnicodeDecodeError, csv.Error) as error:
            raise FileError(path, f"cannot be read ({error})") from error
        super().__init__(path, dict(zip(header, zip(*rows, strict=True), strict=bool(rows))), lines)


class ParquetColumns(Columns):
    """The columns of a Parquet file, a cell without a value being empty.

    Raises ``FileError`` for what cannot be read.
    """

    def __init__(self, path: Path) -> None:
        try:
            with opening(path, "Parquet file"):
                table = pq.read_table(path, partitioning=None)
        except pa.ArrowException as error:
            raise FileError(path, f"cannot be read ({error})") from error
        twice = next((name for name in table.column_names if table.column_names.count(name) > 1), None)
        if twice is not None:
            raise FileError(path, f"two columns are called {twice!r}")
        columns = {
            name: ["" if cell is None else str(cell) for cell in table[name].to_pylist()] for name in table.column_names
        }
        super().__init__(path, columns, range(1, table.num_rows + 1))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
