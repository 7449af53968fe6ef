"""What one step of a ``TurnScheduler`` does, and the settings that bound it."""

from dataclasses import dataclass, field
from typing import Literal

from simcore.scheduling.turns.seat import Seat

Mode = Literal["extend", "decode", "mixed"]


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """The settings of a ``TurnScheduler``.

    ``chunk_tokens`` is None where prompts are never cut. With ``mixed`` those who run decode in steps of prompts too.
    With ``ends_late`` a step is planned before the result of the one before it is known. A waiting request may take the
    slot of one whose priority is worse by more than ``displaces_beyond``, None for never.
    """

    slots: int
    input_tokens: int
    chunk_tokens: int | None
    mixed: bool = False
    ends_late: bool = False
    displaces_beyond: int | None = None


@dataclass(slots=True, eq=False)
class Turn:
    """One step: ``seats`` in batch order, of which the ``decoding`` ones come last, with their new tokens.

    ``prefixes`` are what was there before. ``cut`` is the request whose prompt is unfinished after it.
    """

    mode: Mode
    seats: list[Seat]
    new_tokens: list[int]
    prefixes: list[int]
    admitted: list[Seat] = field(default_factory=list)
    decoding: list[Seat] = field(default_factory=list)
    cut: Seat | None = None
