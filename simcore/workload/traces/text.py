"""Opening text files, compressed or not, with every failure told as a FileError."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO

from simcore.core.errors import FileError
from simcore.core.files import opening

_BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """``path`` as UTF-8 text, unpacked if its name ends in .gz; errors while it is read become FileError too.

    Where the text breaks off, or is none, the error names the line.
    """
    with opening(path, "file of requests"):
        try:
            with _open(path) as text:
                yield text
        except UnicodeDecodeError as error:
            raise FileError(path, "is not UTF-8 text", _first_unreadable_line(path)) from error
        except gzip.BadGzipFile as error:
            why = "its checksum is wrong" if "CRC" in str(error) else "it has no gzip header"
            raise FileError(path, f"is a broken gzip file ({why})") from error
        except _BROKEN_GZIP as error:
            raise FileError(path, "is where the gzip file breaks off", _first_unreadable_line(path)) from error


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _first_unreadable_line(path: Path) -> int:
    """The line, from 1, that cannot be unpacked or is not UTF-8. Text is decoded by the block, which tells no line."""
    line = 0
    content: IO[bytes] | gzip.GzipFile
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as content:
        try:
            for line, raw in enumerate(content, start=1):  # noqa: B007
                raw.decode("utf-8")
        except UnicodeDecodeError:
            return line
        except _BROKEN_GZIP:
            return line + 1
    return line
