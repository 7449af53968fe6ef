"""Opening text files, compressed or not, with every failure told as a FileError."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TextIO

from simcore.core.errors import FileError
from simcore.core.files import opening

MOST_LINE_CHARACTERS = 1 << 24
"""Of a line of a trace, ids and prompts included."""
MOST_CHARACTERS = 1 << 30
"""Of a file that is held as a whole."""
_BROKEN_GZIP = (EOFError, zlib.error, gzip.BadGzipFile)


@contextmanager
def opened(path: Path) -> Iterator[Iterator[str]]:
    """The lines of ``path``, UTF-8 text, unpacked if its name ends in .gz.

    Errors while it is read become FileError too. Where the text breaks off, or is none, the error names the line.
    """
    with _reading(path) as text:
        yield _lines(path, text)


def whole(path: Path) -> str:
    """All of such a text; raises FileError, also for one that is too long to be held."""
    with _reading(path) as text:
        content = text.read(MOST_CHARACTERS + 1)
    if len(content) > MOST_CHARACTERS:
        raise FileError(path, f"is longer than {MOST_CHARACTERS:,} characters")
    return content


@contextmanager
def _reading(path: Path) -> Iterator[TextIO]:
    with opening(path, "file of requests"):
        if path.exists() and not path.is_dir() and not path.is_file():
            raise FileError(path, "is no regular file, but a trace is read more than once: save it to a file first")
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


def _lines(path: Path, text: TextIO) -> Iterator[str]:
    """The lines of a text, of which no more is held than one that is not too long."""
    number = 0
    while line := text.readline(MOST_LINE_CHARACTERS + 1):
        number += 1
        if len(line) > MOST_LINE_CHARACTERS:
            raise FileError(path, f"is longer than {MOST_LINE_CHARACTERS:,} characters", number)
        yield line


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
            while raw := content.readline(4 * MOST_LINE_CHARACTERS):
                line += 1
                raw.decode("utf-8")
        except UnicodeDecodeError:
            return line
        except _BROKEN_GZIP:
            return line + 1
    return line
