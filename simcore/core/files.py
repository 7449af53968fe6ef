"""Reading and writing files that a user names, with every failure told as a FileError."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from importlib.resources.abc import Traversable
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from simcore.core.errors import FileError

MOST_BYTES = 1 << 28
"""Of a file that is read as a whole; what is larger is none that anybody wrote by hand."""
_MOST_DIGITS = 309
"""Of a whole number that floating point can count with."""


def check_path(path: str | os.PathLike[str]) -> None:
    """Raise ``FileError`` for a text that the file system can take for no path at all."""
    try:
        unusable = b"\0" in os.fsencode(path)
    except UnicodeEncodeError:
        unusable = True
    if unusable:
        raise FileError(path, "cannot be a path, as it holds a character that no path has")


@contextmanager
def opening(path: str | os.PathLike[str], kind: str = "file") -> Iterator[None]:
    """Whatever keeps ``path`` from being opened or read becomes a ``FileError``; ``kind`` says what was expected."""
    check_path(path)
    try:
        yield
    except FileNotFoundError as error:
        raise FileError(path, "no such file") from error
    except IsADirectoryError as error:
        raise FileError(path, f"is a folder, expected a {kind}") from error
    except OSError as error:
        raise FileError(path, f"cannot be read ({_why(error)})") from error


def _why(error: OSError) -> str:
    """The system's words; libraries put theirs around them."""
    return os.strerror(error.errno) if error.errno else str(error)


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever keeps a file or folder from being written becomes a ``FileError`` that names ``path``."""
    check_path(path)
    try:
        yield
    except OSError as error:
        raise FileError(path, f"cannot be written ({_why(error)})") from error


def read_text(file: Path | Traversable, kind: str, shown: str | None = None) -> str:
    """The UTF-8 text of a file; raises ``FileError``, which calls it ``shown`` if that is given."""
    path = shown or str(file)
    with opening(path, kind), file.open("rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise FileError(path, f"is larger than {MOST_BYTES >> 20} MiB, expected a {kind}")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise FileError(path, f"is not UTF-8 text, expected a {kind}", line) from None


def read_json(path: Path) -> Any:
    """What a JSON file holds; raises ``FileError``, naming the line where one is to blame."""
    text = read_text(path, "JSON file")
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        raise FileError(path, f"not valid JSON ({error.msg})", error.lineno) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a list in a list in a list ...
        raise FileError(path, f"not valid JSON ({json_problem(error)})") from None


def parse_json(text: str, **hooks: Any) -> Any:
    """What a JSON text holds; ``hooks`` are those of ``json.loads``.

    Raises ``ValueError`` for what is no JSON, and for numbers that floating point cannot count with, NaN and infinity
    included; ``RecursionError`` for what is nested too deeply.
    """
    return json.loads(text, **{"parse_int": _whole, "parse_float": _finite, "parse_constant": _no_number, **hooks})


def _whole(text: str) -> int:
    return int(text) if len(text) <= _MOST_DIGITS else _no_number(text)


def _finite(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else _no_number(text)


def exact_number(text: str) -> Decimal:
    """The number in a JSON text with all its digits; raises ``ValueError`` for too long an exponent."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:_MOST_DIGITS]} is a number beyond all bounds")


def json_problem(error: ValueError | RecursionError) -> str:
    """What the parser could not take, in a few words."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return error.msg if isinstance(error, json.JSONDecodeError) else "it holds a number beyond all bounds"
