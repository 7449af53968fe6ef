"""When outputs end: true output lengths, which nobody but the simulated executor knows."""

from collections.abc import Sequence
from heapq import heappop, heappush

from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request


class OutputEnds:
    """Tells when the decoding requests of one replica finish.

    A request's last token falls in a step of the decode pool that its origin fixes, so the next finish is the head of a
    heap. Entries of requests that have since been preempted or stalled are recognised by admission and origin, and
    dropped.
    """

    __slots__ = ("_heap", "_output_tokens")

    def __init__(self) -> None:
        self._output_tokens: dict[int, int] = {}
        self._heap: list[tuple[int, int, int, Request]] = []

    def share(self, other: "OutputEnds") -> None:
        """Know the same requests as another, whose replica runs some of them."""
        self._output_tokens = other._output_tokens

    def expect(self, request: Request, output_tokens: int) -> None:
        """Take note of the true output length of a request that was just accepted."""
        self._output_tokens[request.number] = output_tokens

    def forget(self, request: Request) -> int:
        """Drop a request that has ended; returns its true output length."""
        return self._output_tokens.pop(request.number)

    def output_tokens_of(self, request: Request) -> int:
        """The true output length of a request that has not ended."""
        return self._output_tokens[request.number]

    def ends_next(self, request: Request) -> bool:
        """Whether the next token of a request that prefills is its last."""
        return request.known_output_tokens + 1 == self._output_tokens[request.number]

    def follow(self, request: Request) -> None:
        """Watch a request that has joined the decode pool, or was moved in it."""
        last_step = request.origin + request.prompt_tokens + self._output_tokens[request.number] - 1
        heappush(self._heap, (last_step, request.admission, request.origin, request))

    def steps_to_next(self, pool: DecodePool) -> int:
        """Decode steps until some member gets its last token; the pool must have members."""
        heap = self._heap
        while True:
            last_step, admission, origin, request = heap[0]
            if request.pool is pool and request.admission == admission and request.origin == origin:
                return last_step - pool.steps
            heappop(heap)

    def take(self, pool: DecodePool, steps: int, stalled: Sequence[Request] = ()) -> list[Request]:
        """Take out the members that get their last token in the next ``steps`` steps, in order of their admission.

        Those that are ``stalled`` meanwhile get none, and must be followed anew.
        """
        heap, last_step = self._heap, pool.steps + steps
        if not heap or heap[0][0] > last_step:
            return []
        done: list[Request] = []
        while heap and heap[0][0] <= last_step:
            _, admission, origin, request = heappop(heap)
            standing = request.pool is pool and request.admission == admission and request.origin == origin
            if standing and request not in stalled:
                done.append(request)
        return done
