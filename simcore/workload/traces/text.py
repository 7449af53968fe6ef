"""Opening text files, compressed or not, with every failure told as a FileError."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from simcore.errors import FileError


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    """``path`` as UTF-8 text, unpacked if its name ends in .gz; errors while it is read become FileError too."""
    try:
        with _open(path) as text:
            yield text
    except FileNotFoundError as error:
        raise FileError(path, "no such file") from error
    except UnicodeDecodeError as error:
        raise FileError(path, "is not UTF-8 text") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FileError(path, "is a broken gzip file") from error
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror or error})") from error


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")
