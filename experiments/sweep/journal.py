"""Finished cells, a line of JSON each, appended as they finish: a process that is killed loses none but its last."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from experiments.sweep.cell_run import Row
from simcore.core.errors import FileError
from simcore.core.files import parse_json, writing


@dataclass(slots=True)
class Journal:
    """An open journal: ``rows`` of finished cells by fingerprint."""

    rows: dict[str, list[Row]]
    _file: BinaryIO

    def keep(self, fingerprint: str, rows: list[Row]) -> None:
        """Write the rows of a cell, so that they are there even if the machine stops now."""
        self.rows[fingerprint] = rows
        self._file.write(json.dumps({"fingerprint": fingerprint, "rows": rows}, allow_nan=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def opened(path: Path) -> Iterator[Journal]:
    """The journal of a folder, made if there is none; a line that was cut off is dropped.

    Raises ``FileError`` where it cannot be written, or another process has it open.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FileError(path, "is being written by another sweep") from None
        file.seek(0)
        rows: dict[str, list[Row]] = {}
        whole = 0
        for line in file:
            kept = _read(line)
            if kept is None:
                break
            rows[kept["fingerprint"]] = kept["rows"]
            whole += len(line)
        file.truncate(whole)
        yield Journal(rows, file)


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        kept = parse_json(line.decode()) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None
    whole = isinstance(kept, dict) and isinstance(kept.get("fingerprint"), str) and isinstance(kept.get("rows"), list)
    return kept if whole else None
