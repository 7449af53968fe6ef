"""What one step does."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from simcore.core.request import Request


class BlockCopy(NamedTuple):
    """A block of KV memory whose contents an engine must copy into another before the step runs."""

    source: int
    target: int


class Chunk(NamedTuple):
    """Part of a prompt that one step prefills, after the ``computed_tokens`` already in memory."""

    request: Request
    tokens: int
    computed_tokens: int


@dataclass(slots=True)
class BatchPlan:
    """The batch of one step, or of several alike.

    ``decoding`` requests gain one token each: all that decode, except the ``stalled`` ones, for which the token budget
    had no room. ``chunks`` are in scheduling order, the ``admitted`` requests' last, ``prefill_tokens`` in all.
    ``preempted`` requests are already back in the queue, ``dropped`` ones gone for good, and ``released`` ones had
    ended before but held memory for one plan more, of whom ``completed`` are told of only now; ``short_of_memory``
    tells that some request waits for a block. The plan stands for ``stable_steps`` steps; an arrival can end that only
    if ``admits_arrivals``. At ``retry_ns`` the plan, or a plan of nothing, is worth another look.

    Where single blocks are known, an engine moves their contents before the step runs, in this order: ``copies``
    between GPU blocks for sequences that were forked since the last plan, ``copies_out`` from GPU blocks to blocks of
    swap space, and ``copies_in`` back from there.
    """

    decoding: int = 0
    chunks: list[Chunk] = field(default_factory=list)
    prefill_tokens: int = 0
    admitted: int = 0
    stalled: Sequence[Request] = ()
    preempted: Sequence[Request] = ()
    swapped_out: Sequence[Request] = ()
    swapped_in: Sequence[Request] = ()
    loading: Sequence[Request] = ()
    dropped: Sequence[Request] = ()
    released: Sequence[Request] = ()
    completed: Sequence[Request] = ()
    short_of_memory: bool = False
    stable_steps: int = 1
    admits_arrivals: bool = True
    retry_ns: int | None = None
    copies: Sequence[BlockCopy] = ()
    copies_out: Sequence[BlockCopy] = ()
    copies_in: Sequence[BlockCopy] = ()

    @property
    def empty(self) -> bool:
        """Whether nobody runs by it."""
        return not self.decoding and not self.chunks

    def add_chunk(self, request: Request, tokens: int) -> None:
        """Prefill the next ``tokens`` tokens of a request."""
        self.chunks.append(Chunk(request, tokens, request.computed_tokens))
        self.prefill_tokens += tokens
