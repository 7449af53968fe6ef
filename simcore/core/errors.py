"""What a user can get wrong, each answered with one sentence."""

import difflib
import re
from collections.abc import Iterable
from itertools import islice
from os import PathLike

_LONGEST_VALUE = 80
"""Characters of a value that an error shows; of a longer one it shows the beginning."""
_LONGEST_PATH = 300
"""The same for a path, of which it shows the end too."""


_CLOSE = 0.65
"""How alike two names must be for one to be a slip of the other."""
_SHORTEST_WORD = 4


_LONGEST_SENTENCE = 4000
"""The same for all that an error says."""


class ServetwinError(Exception):
    """Base of every error that servetwin raises on purpose; the command line exits with code 2 on it."""


class Phrase(str):
    """Words that stand where a value would in an ``InputError``, shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class InputError(ServetwinError):
    """A value that cannot be used: names the field, the value, what was expected and the nearest valid name.

    >>> raise InputError("workload.requests", -3, "a whole number of at least 1")
    Traceback (most recent call last):
    simcore.core.errors.InputError: workload.requests is -3, expected a whole number of at least 1.
    """

    # All arguments go to Exception, which is what lets an error be copied, into another process too.
    def __init__(self, field: str, value: object, expected: str, nearest: str | None = None) -> None:
        self.field = field
        self.value = value
        self.expected = expected
        self.nearest = nearest
        super().__init__(field, value, expected, nearest)

    def __str__(self) -> str:
        hint = f" Did you mean {self.nearest!r}?" if self.nearest else ""
        return _sentence(f"{_shown_path(self.field)} is {_shown(self.value)}, expected {self.expected}.{hint}")


class UnknownNameError(InputError):
    """A name that is not among the known ones."""

    def __init__(self, field: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        super().__init__(field, name, f"one of {', '.join(known)}", nearest_name(name, known))
        self.args = (field, name, known)


class FileError(ServetwinError):
    """A file that is missing, unreadable or broken; ``line`` counts from 1 where one line is to blame."""

    def __init__(self, path: str | PathLike[str], problem: str, line: int | None = None) -> None:
        self.path = str(path)
        self.line = line
        self.problem = problem
        super().__init__(self.path, problem, line)

    def __str__(self) -> str:
        place = _shown_path(self.path)
        if self.line is not None:
            place += f", line {self.line}"
        return _sentence(f"{place}: {self.problem}.")


class CapacityError(ServetwinError):
    """A model that does not fit the memory of the accelerators it was given."""


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like ``name`` (case ignored), or None if nothing comes close.

    Those that go on where ``name`` ends, whatever stands between letters and digits, come before those that look like
    all of it, or of which a word does. A single letter is no beginning.
    """
    by_lowercase = {candidate.lower(): candidate for candidate in known}
    begun, wanted = _letters_and_digits(name), name.lower()
    longer = [candidate for candidate in by_lowercase if _letters_and_digits(candidate).startswith(begun)]
    if len(begun) > 1 and longer:
        return by_lowercase[max(longer, key=lambda candidate: (_alike(wanted, candidate), candidate))]
    nearest = max(by_lowercase, key=lambda candidate: (_closeness(wanted, candidate), candidate), default="")
    return by_lowercase[nearest] if nearest and _closeness(wanted, nearest) >= _CLOSE else None


def _closeness(name: str, candidate: str) -> float:
    words = [word for word in re.split(r"[-_. ]", candidate) if len(word) >= _SHORTEST_WORD]
    return max(_alike(name, other) for other in (candidate, *words))


def _alike(name: str, other: str) -> float:
    """The share of letters that two texts have in common, in order."""
    return difflib.SequenceMatcher(None, other, name).ratio()


def shortened(text: str, most: int = _LONGEST_VALUE) -> str:
    """The text, of which no more than the beginning is left where it is long."""
    return text if len(text) <= most else f"{text[:most]}..."


def _letters_and_digits(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def printable(text: str) -> str:
    """The text with what cannot be printed, such as an end of line or a terminal's control sequence, escaped."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def _sentence(text: str) -> str:
    return shortened(printable(text), _LONGEST_SENTENCE)


def _shown_path(path: str) -> str:
    half = _LONGEST_PATH // 2
    return path if len(path) <= _LONGEST_PATH else f"{path[:half]}...{path[-half:]}"


def _shown(value: object) -> str:
    """A value as a scenario file has it: nothing is "empty", true and false are lowercase."""
    if isinstance(value, Phrase):
        return value
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = repr(_beginning(value))
    except ValueError:  # Python refuses to print whole numbers of many thousand digits
        return "a number beyond all bounds"
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def _beginning(value: object, levels: int = 2) -> object:
    """As much of a value as an error may show, so that no text is made of millions of values."""
    if isinstance(value, str | bytes):
        return value[: _LONGEST_VALUE + 1]
    if isinstance(value, dict | list | tuple) and levels == 0:
        return Phrase("...")
    if isinstance(value, dict):
        items = islice(value.items(), _LONGEST_VALUE)
        return {_beginning(key, 0): _beginning(inner, levels - 1) for key, inner in items}
    if isinstance(value, list | tuple):
        return type(value)(_beginning(inner, levels - 1) for inner in value[:_LONGEST_VALUE])
    return value
