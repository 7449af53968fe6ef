"""The outputs under way, by the numbers of their requests."""

from collections.abc import Callable

from live.engine.sequence import LiveSequence, WorkloadSequence
from simcore.core.request import Request


class LiveOutputs:
    """Has the tokens of each request that a replica has taken in.

    ``sequences`` of callers are handed in before their requests arrive, those of a workload are made up when they do.
    ``on_decoding`` is told of a request that begins to decode, ``on_forgotten`` of one that is over.
    """

    def __init__(self, vocabulary: int) -> None:
        self.sequences: dict[int, LiveSequence] = {}
        self.on_decoding: Callable[[Request], None] | None = None
        self.on_forgotten: Callable[[Request, LiveSequence], None] | None = None
        self._vocabulary = vocabulary

    def share(self, other: "LiveOutputs") -> None:
        """Have the same requests as another, whose replica runs some of them."""
        self.sequences = other.sequences

    def expect(self, request: Request, output_tokens: int) -> None:
        """Take note of a request that was just accepted, and of how many tokens it may generate."""
        if request.number not in self.sequences:
            self.sequences[request.number] = WorkloadSequence.of(request, output_tokens, self._vocabulary)

    def forget(self, request: Request) -> int:
        """Drop a request that has ended; returns how many tokens it generated."""
        sequence = self.sequences.pop(request.number)
        if self.on_forgotten is not None:
            self.on_forgotten(request, sequence)
        return sequence.output_tokens

    def follow(self, request: Request) -> None:
        """A request has joined the decode pool."""
        if self.on_decoding is not None:
            self.on_decoding(request)
