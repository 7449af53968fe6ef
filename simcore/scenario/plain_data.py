"""What a scenario document may consist of, and how deep and large it may be."""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from simcore.core.errors import InputError, Phrase

MOST_LEVELS = 20
"""Mappings and lists within each other; no scenario has a use for half of it."""
_MOST_VALUES = 1_000_000
"""Values in all; references within YAML can make exponentially many of a few lines."""
_GREATEST = sys.float_info.max


def plain_data(document: Any, field: str) -> Any:
    """A value with numpy's numbers and arrays as Python's, and every mapping as a dictionary, all copied.

    Anything else stays what it is, for a schema to judge. Raises ``InputError``, naming ``field``, for a value nested
    more than ``MOST_LEVELS`` deep, as one that contains itself is, or one that is larger than any scenario; and, naming
    its place, for a whole number too large for floating point, with which nothing here could count.
    """
    values = 0

    def copied(value: Any, level: int, path: tuple[str, ...]) -> Any:
        nonlocal values
        values += 1
        if level > MOST_LEVELS:
            raise InputError(field, Phrase("nested too deeply"), f"at most {MOST_LEVELS} levels")
        if values > _MOST_VALUES:
            raise InputError(field, Phrase("too large"), f"at most {_MOST_VALUES:,} values")
        if isinstance(value, Mapping):
            for key in value:
                check_size(key, path, "a mapping with a key beyond all bounds")
            return {key: copied(inner, level + 1, (*path, str(key))) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [copied(inner, level + 1, (*path, str(place))) for place, inner in enumerate(value)]
        check_size(value, path)
        return value.tolist() if isinstance(value, np.generic | np.ndarray) else value

    def check_size(value: Any, path: tuple[str, ...], problem: str = "a number beyond all bounds") -> None:
        if isinstance(value, int) and abs(value) > _GREATEST:
            raise InputError(".".join(path) or field, Phrase(problem), f"at most {_GREATEST:g} in size")

    return copied(document, 0, ())
