"""Records of a JSON Lines file: one object a line. ``metadata.start`` names a key of an object within the record."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from simcore.core.errors import FileError, nearest_name
from simcore.core.files import exact_number, json_problem
from simcore.workload.traces.text import opened


def column_names(path: Path) -> list[str]:
    """The keys of the first object, those of objects in it too. Raises FileError for an empty or unreadable file."""
    for _, record in _records(path):
        return list(flattened(record))
    raise FileError(path, "is empty, expected one JSON object a line")


def rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[object]]]:
    """Line number and the values of the keys ``columns``, line by line; blank lines are passed over.

    Raises FileError naming the line that is no JSON object or lacks a key.
    """
    nested = any("." in name for name in columns)
    for line, record in _records(path):
        found = flattened(record) if nested else record
        for name in columns:
            if name not in found:
                nearest = nearest_name(name, found)
                hint = f" (did you mean {nearest!r}?)" if nearest else ""
                raise FileError(path, f"has no key {name!r}{hint}", line)
        yield line, [found[name] for name in columns]


def flattened(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a record by dotted key; those of an object in it come under its key, which has the object."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        found[f"{prefix}{key}"] = value
        if isinstance(value, dict):
            found |= flattened(value, f"{prefix}{key}.")
    return found


class _RepeatedKeyError(Exception):
    """An object has a key twice; the message is the key."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedKeyError(repr(next(name for name in names if names.count(name) > 1)))
    return record


def _records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with opened(path) as text:
        for line, content in enumerate(text, start=1):
            if not content.strip():
                continue
            try:
                record = json.loads(content, parse_float=exact_number, object_pairs_hook=_object)
            except _RepeatedKeyError as error:
                raise FileError(path, f"has the key {error} twice", line) from error
            except (ValueError, RecursionError) as error:
                raise FileError(path, f"is not valid JSON ({json_problem(error)})", line) from error
            if not isinstance(record, dict):
                raise FileError(path, "is not a JSON object", line)
            yield line, record
