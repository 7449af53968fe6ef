"""Reading and writing files that a user names, with every failure told as a FileError."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from simcore.core.errors import FileError


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
        raise FileError(path, f"cannot be read ({error.strerror or error})") from error


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever keeps a file or folder from being written becomes a ``FileError`` that names ``path``."""
    check_path(path)
    try:
        yield
    except OSError as error:
        raise FileError(path, f"cannot be written ({error.strerror or error})") from error


def read_text(file: Path | Traversable, kind: str, shown: str | None = None) -> str:
    """The UTF-8 text of a file; raises ``FileError``, which calls it ``shown`` if that is given."""
    path = shown or str(file)
    with opening(path, kind):
        content = file.read_bytes()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise FileError(path, f"is not UTF-8 text, expected a {kind}", line) from None


def read_json(path: Path) -> Any:
    """What a JSON file holds; raises ``FileError``, naming the line where one is to blame."""
    text = read_text(path, "JSON file")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise FileError(path, f"not valid JSON ({error.msg})", error.lineno) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a list in a list in a list ...
        raise FileError(path, f"not valid JSON ({json_problem(error)})") from None


def json_problem(error: ValueError | RecursionError) -> str:
    """What the parser could not take, in a few words."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return error.msg if isinstance(error, json.JSONDecodeError) else "it holds a number beyond all bounds"
