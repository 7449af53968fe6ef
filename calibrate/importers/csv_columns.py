"""CSV files by column, with errors that name file and line."""

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simcore.errors import FileError


class CsvColumns:
    """The columns of a CSV file with a header. Raises ``FileError`` for what cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open(encoding="utf-8", newline="") as stream:
                reader = csv.reader(stream)
                self.header = [name.strip() for name in next(reader, [])]
                rows, lines = [], []
                for cells in reader:
                    if not cells:
                        continue
                    if len(cells) != len(self.header):
                        expected = f"{len(cells)} columns where the header has {len(self.header)}"
                        raise FileError(path, expected, reader.line_num)
                    rows.append(cells)
                    lines.append(reader.line_num)
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise FileError(path, f"cannot be read ({error})") from error
        if not rows:
            raise FileError(path, "no rows")
        self._columns = dict(zip(self.header, zip(*rows, strict=True), strict=True))
        self.lines = np.array(lines, dtype=np.int64)

    def text(self, name: str) -> NDArray[np.str_]:
        """A column as it stands."""
        if name not in self._columns:
            raise FileError(self.path, f"no column {name}; there are {', '.join(self.header)}", 1)
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

    def whole(self, name: str) -> NDArray[np.int64]:
        """A column of whole numbers."""
        values = self.numbers(name)
        broken = np.flatnonzero(~np.isfinite(values) | (values != np.floor(values)))
        if len(broken):
            line = int(self.lines[broken[0]])
            raise FileError(self.path, f"{name} is {values[broken[0]]}, expected a whole number", line)
        return values.astype(np.int64)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
