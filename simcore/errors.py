"""What a user can get wrong, each answered with one sentence."""

import difflib
from collections.abc import Iterable
from os import PathLike


class ServetwinError(Exception):
    """Base of every error that servetwin raises on purpose; the command line exits with code 2 on it."""


class InputError(ServetwinError):
    """A value that cannot be used: names the field, the value, what was expected and the nearest valid name.

    >>> raise InputError("workload.requests", -3, "a whole number of at least 1")
    Traceback (most recent call last):
    simcore.errors.InputError: workload.requests is -3, expected a whole number of at least 1.
    """

    def __init__(self, field: str, value: object, expected: str, nearest: str | None = None) -> None:
        self.field = field
        self.value = value
        self.expected = expected
        self.nearest = nearest
        hint = f" Did you mean {nearest!r}?" if nearest else ""
        super().__init__(f"{field} is {value!r}, expected {expected}.{hint}")


class UnknownNameError(InputError):
    """A name that is not among the known ones."""

    def __init__(self, field: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        super().__init__(field, name, f"one of {', '.join(known)}", nearest_name(name, known))


class FileError(ServetwinError):
    """A file that is missing, unreadable or broken; ``line`` counts from 1 where one line is to blame."""

    def __init__(self, path: str | PathLike[str], problem: str, line: int | None = None) -> None:
        self.path = str(path)
        self.line = line
        self.problem = problem
        place = f"{path}, line {line}" if line is not None else f"{path}"
        super().__init__(f"{place}: {problem}.")


class CapacityError(ServetwinError):
    """A model that does not fit the memory of the accelerators it was given."""


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like ``name`` (case ignored), or None if nothing comes close."""
    by_lowercase = {candidate.lower(): candidate for candidate in known}
    matches = difflib.get_close_matches(name.lower(), by_lowercase, n=1, cutoff=0.5)
    return by_lowercase[matches[0]] if matches else None
