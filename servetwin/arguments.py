"""Checks of what a caller from Python hands in, where a wrong type would otherwise fail far from its cause."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from experiments.bands.bands import check_replays
from simcore.core.errors import InputError, Phrase
from simcore.core.result import Result


def path_of(name: str, value: object) -> Path:
    """The path that an argument states; raises ``InputError`` for what is none."""
    if not isinstance(value, str | PathLike):
        raise _wrong(name, value, "a path")
    try:
        return Path(value)
    except TypeError:  # a path of bytes
        raise _wrong(name, value, "a path as text") from None


def texts_of(name: str, value: object, each: str) -> Sequence[str]:
    """Several texts; raises ``InputError`` for what is none, a single text included."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _wrong(name, value, f"a list of {each}")
    for text in value:
        if not isinstance(text, str):
            raise InputError(f"one of {name}", text, each)
    return value


def whole_number_of(name: str, value: object) -> int | None:
    """A whole number, numpy's included, or None; raises ``InputError`` for anything else."""
    if value is None or (isinstance(value, int | np.integer) and not isinstance(value, bool)):
        return None if value is None else int(value)
    raise InputError(name, value, "a whole number")


def replays_of(name: str, value: object) -> int:
    """A number of replays for bands; raises ``InputError`` for one that no band can be made of."""
    replays = whole_number_of(name, value)
    if replays is None:
        raise _wrong(name, value, "a whole number")
    check_replays(name, replays)
    return replays


def check_result(value: object) -> None:
    """Raise ``InputError`` unless the value is what ``simulate`` returns."""
    if not isinstance(value, Result):
        raise _wrong("result", value, "what simulate returned")


def check_callable(name: str, value: object) -> None:
    """Raise ``InputError`` unless the value is None or can be called."""
    if value is not None and not callable(value):
        raise _wrong(name, value, "a function")


def values_by_key(value: object) -> Mapping[str, Sequence[Any]]:
    """The values to compare by the key that they belong to; raises ``InputError`` for what is no mapping of texts."""
    if not isinstance(value, Mapping):
        raise _wrong("vary", value, "a mapping from keys to lists of values")
    for key in value:
        if not isinstance(key, str):
            raise InputError("one of vary", key, "a key such as scheduler.ordering.name")
    return value


def is_document(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a scenario is given as a mapping, not as a path; raises ``InputError`` if it is neither."""
    if isinstance(value, Mapping):
        return True
    if not isinstance(value, str | PathLike):
        raise _wrong("scenario", value, "the path of a YAML file, or a mapping of model, cluster, workload and so on")
    return False


def _wrong(name: str, value: object, expected: str) -> InputError:
    return InputError(name, Phrase("None" if value is None else f"of type {type(value).__name__}"), expected)
