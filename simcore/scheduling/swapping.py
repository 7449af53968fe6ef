"""Requests that were preempted with their KV memory kept aside, and how they return."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from simcore.core.request import Request
from simcore.memory.swap import SwapSpace


class SwappedRequest(NamedTuple):
    """A request that is swapped out, whether it was decoding, and the blocks that it has in swap space."""

    request: Request
    decoding: bool
    blocks: list[int]


@dataclass(slots=True)
class Swapping:
    """Swapped-out requests in the order in which they left; they return in it, before anyone else is admitted."""

    space: SwapSpace
    away: deque[SwappedRequest] = field(default_factory=deque)

    def abandon(self, request: Request) -> bool:
        """Forget a request if it is away."""
        for away in self.away:
            if away.request is request:
                self.away.remove(away)
                self.space.give_up(away.blocks)
                return True
        return False

    def check(self) -> None:
        """Raise AssertionError if swap space is not in use by those that are away, or is overfull."""
        used = sum(len(away.blocks) for away in self.away)
        if used != self.space.used_blocks or self.space.free_blocks < 0:
            raise AssertionError(f"{used} blocks are swapped out, noted {self.space.used_blocks}")
