"""What one step does."""

from dataclasses import dataclass, field
from typing import NamedTuple

from simcore.request import Request


class Chunk(NamedTuple):
    """Part of a prompt that one step prefills, after the ``computed_tokens`` already in memory."""

    request: Request
    tokens: int
    computed_tokens: int


@dataclass(slots=True)
class BatchPlan:
    """The batch of one step, or of several alike.

    Every decoding request gains one token, except the ``stalled`` ones, for which the token budget had no room.
    ``chunks`` are in scheduling order, those of newly ``admitted`` requests last. ``preempted`` requests are already
    back in the queue. The plan stands for ``stable_steps`` steps; an arrival can end that only if ``admits_arrivals``.
    """

    decoding: int = 0
    chunks: list[Chunk] = field(default_factory=list)
    admitted: int = 0
    stalled: list[Request] = field(default_factory=list)
    preempted: list[Request] = field(default_factory=list)
    stable_steps: int = 1
    admits_arrivals: bool = True

    @property
    def prefill_tokens(self) -> int:
        """Prompt tokens that the step computes."""
        return sum(chunk.tokens for chunk in self.chunks)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to run."""
        return not self.decoding and not self.chunks
