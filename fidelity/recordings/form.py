"""What recordings of all engines have in common: strict reading, and what a step may differ in."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from simcore.core.content import Run
from simcore.core.errors import InputError, Phrase

IDENTITY_BITS = 40

_MISSPELT = 0.8
"""How like a name that is not there an unknown one must be to be taken for it, as ``difflib`` measures it."""
MOST = 2**31 - 1

Count = Annotated[int, Field(ge=0, le=MOST)]
Positive = Annotated[int, Field(ge=1, le=MOST)]
Identity = Annotated[int, Field(ge=0, lt=1 << IDENTITY_BITS)]
BlockTokens = Annotated[int, Field(ge=1, le=65_536)]
"""As in scenarios: the books of decodes have a place for each token of a block."""
_RunTokens = Annotated[int, Field(ge=1, le=1 << 24)]
Prompt = Annotated[list[tuple[Identity, _RunTokens]], Field(min_length=1)]
"""Tokens as (first, count) ranges; equal ranges are equal tokens."""
Level = Annotated[int, Field(ge=-MOST, le=MOST)]


class Part(BaseModel):
    """Part of a recording; keys that nobody reads are kept, to be named."""

    model_config = ConfigDict(extra="allow", frozen=True)

    def check_spelling(self, field: str) -> None:
        """Raise ``InputError`` for a key that nobody reads and that looks like one that is missing."""
        missing = type(self).model_fields.keys() - self.model_fields_set
        for key in self.model_extra or () if missing else ():
            meant = get_close_matches(key.lower(), missing, n=1, cutoff=_MISSPELT)
            if meant:
                raise InputError(f"{field}{key}", Phrase("an unknown field"), "a field of recordings", meant[0])


class RecordedRequest(Part):
    """A request, added before step ``arrive_step`` is planned."""

    id: Count
    arrive_step: Count
    prompt: Prompt
    output: Positive
    priority: Level = 0

    @property
    def prompt_tokens(self) -> int:
        """Length of its prompt."""
        return sum(tokens for _, tokens in self.prompt)

    @property
    def runs(self) -> list[Run]:
        """Its prompt."""
        return [Run(first, tokens) for first, tokens in self.prompt]


class Recording(Protocol):
    """A whole run of one engine."""

    compared: Sequence[str]
    """The fields of each step that are held against what we do."""

    @property
    def kind(self) -> str:
        """Which engine, in which mode."""

    @property
    def recorded_steps(self) -> Sequence[Any]:
        """Its steps, with the ``compared`` fields as attributes."""

    def check(self, field: str) -> None:
        """Raise ``InputError`` for what the form allows and no run can be; ``field`` is put before its place."""

    def parts(self) -> Iterator[tuple[str, Part]]:
        """All parts, each with where it stands."""


def check_ids(requests: Sequence[RecordedRequest], field: str) -> None:
    """Raise ``InputError`` for an id that stands twice."""
    ids: set[int] = set()
    for number, request in enumerate(requests):
        if request.id in ids:
            raise InputError(f"{field}requests.{number}.id", request.id, "a number that no other request has")
        ids.add(request.id)


@dataclass(frozen=True, slots=True)
class Difference:
    """The first thing in which a step differs: ``what`` was ``recorded``, and ``ours`` is what we do."""

    step: int
    what: str
    recorded: Any
    ours: Any

    def __str__(self) -> str:
        return f"step {self.step}, {self.what}: recorded {self.recorded}, ours {self.ours}"
