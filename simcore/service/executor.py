"""The simulated executor: it alone knows how long each output will be."""

from collections.abc import Sequence
from heapq import heappop, heappush

from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request


class SimulatedExecutor:
    """Tells when the decoding requests of one replica finish.

    A request's last token falls in a step of the decode pool that its origin fixes, so the next finish is the head of a
    heap. Entries of requests that have since been preempted or stalled are recognised by admission and origin, and
    dropped.
    """

    __slots__ = ("_finishes", "_output_tokens")

    def __init__(self) -> None:
        self._output_tokens: dict[int, int] = {}
        self._finishes: list[tuple[int, int, int, Request]] = []

    def share(self, other: "SimulatedExecutor") -> None:
        """Know the same requests as another, whose replica runs some of them."""
        self._output_tokens = other._output_tokens

    def expect(self, request: Request, output_tokens: int) -> None:
        """Take note of the true output length of a request that was just accepted."""
        self._output_tokens[request.number] = output_tokens

    def sample(self, request: Request) -> bool:
        """Sample the token that a completed prefill yields; returns whether it is the request's last."""
        request.known_output_tokens += 1
        return request.known_output_tokens == self._output_tokens[request.number]

    def follow(self, request: Request) -> None:
        """Watch a request that has joined the decode pool, or was moved in it."""
        last_step = request.origin + request.prompt_tokens + self._output_tokens[request.number] - 1
        heappush(self._finishes, (last_step, request.admission, request.origin, request))

    def steps_to_next_finish(self, pool: DecodePool) -> int:
        """Decode steps until some member gets its last token; the pool must have members."""
        finishes = self._finishes
        while True:
            last_step, admission, origin, request = finishes[0]
            if request.pool is pool and (request.admission, request.origin) == (admission, origin):
                return last_step - pool.steps
            heappop(finishes)

    def finished(self, pool: DecodePool) -> Sequence[Request]:
        """Take out the members whose last token the step just run has sampled, in order of their admission."""
        finishes = self._finishes
        if not finishes or finishes[0][0] > pool.steps:
            return ()
        done = []
        while finishes and finishes[0][0] <= pool.steps:
            _, admission, origin, request = heappop(finishes)
            if request.pool is pool and (request.admission, request.origin) == (admission, origin):
                done.append(request)
        return done

    def forget(self, request: Request) -> int:
        """Drop a request that has ended; returns its true output length."""
        return self._output_tokens.pop(request.number)
