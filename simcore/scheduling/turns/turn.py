"""What one step of a ``TurnScheduler`` does."""

from dataclasses import dataclass, field
from typing import Literal

from simcore.core.request import Request
from simcore.scheduling.turns.seat import Seat

Mode = Literal["extend", "decode", "mixed"]


@dataclass(slots=True, eq=False)
class Turn:
    """One step: ``prompts`` with their new tokens and what was there before, then those who decode, in batch order.

    ``admitted`` of the prompts were in the queue before; ``cut`` is the request whose prompt is unfinished after it.
    ``ended`` are those who got their last token by it, once that is noted.
    """

    mode: Mode
    prompts: list[Seat] = field(default_factory=list)
    new_tokens: list[int] = field(default_factory=list)
    prefixes: list[int] = field(default_factory=list)
    admitted: list[Seat] = field(default_factory=list)
    decoding: list[Seat] = field(default_factory=list)
    cut: Seat | None = None
    ended: dict[int, Request] = field(default_factory=dict)

    @property
    def seats(self) -> list[Seat]:
        """Everybody in it."""
        return [*self.prompts, *self.decoding]
