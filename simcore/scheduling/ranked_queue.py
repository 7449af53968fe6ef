"""Queues that are ranked anew in every step that is planned."""

from policies.ordering import Ordering
from simcore.core.request import ReadOnlyRequest, Request

Rank = tuple[float, ...]


class RankedQueue:
    """All who wait, each ranked as of the time at which somebody asks who is first; O(n log n) once per time."""

    __slots__ = ("_chosen", "_ordering", "_ranked", "_ranked_at_s", "_waiting", "size", "tokens")

    def __init__(self, ordering: Ordering) -> None:
        self._ordering = ordering
        self._waiting: dict[int, Request] = {}
        self._ranked: list[tuple[Rank, int]] = []
        self._ranked_at_s: float | None = None
        self._chosen: tuple[Rank, int] | None = None
        self.size = self.tokens = 0

    def push(self, request: Request, now_s: float) -> None:
        """Enter a new or a preempted request."""
        self._waiting[request.number] = request
        self.size += 1
        self.tokens += request.tokens_to_compute
        self._ranked_at_s = None

    def first(self, now_s: float) -> Request:
        """The request with the smallest key as of now; of equals the one that arrived first."""
        if self._ranked_at_s != now_s:
            self._ranked_at_s = now_s
            key = self._ordering.key
            keys = ((key(ReadOnlyRequest(request), now_s), number) for number, request in self._waiting.items())
            self._ranked = sorted(keys, reverse=True)
        self._chosen = self._ranked[-1]
        return self._waiting[self._chosen[1]]

    @property
    def first_key(self) -> Rank:
        """The key of the request that ``first`` has just named."""
        return self._named[0]

    def pop(self) -> Request:
        """Take out the request that ``first`` has just named."""
        request = self._waiting[self._named[1]]
        self.remove(request)
        return request

    def remove(self, request: Request) -> None:
        """Take out a request, wherever it stands."""
        self.size -= 1
        self.tokens -= request.tokens_to_compute
        del self._waiting[request.number]
        if self._ranked and self._ranked[-1][1] == request.number:
            self._ranked.pop()
        else:
            self._ranked_at_s = None
        self._chosen = None

    def next_promotion_s(self) -> float | None:
        """Nobody is promoted: a key can say as much."""
        return None

    @property
    def _named(self) -> tuple[Rank, int]:
        if self._chosen is None:
            raise AssertionError("nobody was asked for first")
        return self._chosen
