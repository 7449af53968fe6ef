"""Tables by column, with errors that name file and line (of text) or row (of a Parquet file, the first being 1)."""

import csv
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from simcore.core.errors import FileError
from simcore.core.files import opening

_LARGEST = 2.0**53
"""Up to here every whole number is a float of its own."""


class Columns(ABC):
    """Cells as text, by column; ``lines`` says where each row stood."""

    def __init__(self, path: Path, names: Sequence[str], lines: Sequence[int]) -> None:
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise FileError(path, f"two columns are called {twice!r}", 1)
        if not lines:
            raise FileError(path, "no rows")
        self.path = path
        self.names = tuple(names)
        self.lines = np.array(lines, dtype=np.int64)

    @abstractmethod
    def _cells(self, name: str) -> Sequence[str]:
        """The cells of a column that there is."""

    def text(self, name: str) -> NDArray[np.str_]:
        """A column as it stands."""
        if name not in self.names:
            raise FileError(self.path, f"no column {name}; there are {', '.join(self.names)}", 1)
        return np.array(self._cells(name))

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
        super().__init__(path, header, lines)
        self._columns = dict(zip(header, zip(*rows, strict=True), strict=True))

    def _cells(self, name: str) -> Sequence[str]:
        return self._columns[name]


class ParquetColumns(Columns):
    """The columns of a Parquet file, a cell without a value being empty.

    Raises ``FileError`` for what cannot be read, of columns that nobody asks for only once they are asked for.
    """

    def __init__(self, path: Path) -> None:
        try:
            with opening(path, "Parquet file"), pq.ParquetFile(path) as file:
                names = file.schema_arrow.names
                self._table = file.read() if len(set(names)) == len(names) else None
                rows = file.metadata.num_rows
        except (pa.ArrowException, ValueError) as error:
            raise FileError(path, f"cannot be read ({error})") from error
        super().__init__(path, names, range(1, rows + 1))

    def _cells(self, name: str) -> Sequence[str]:
        assert self._table is not None
        try:
            return ["" if cell is None else str(cell) for cell in self._table[name].to_pylist()]
        except (pa.ArrowException, ValueError, OverflowError) as error:
            raise FileError(self.path, f"{name} cannot be read ({error})") from error


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
