"""The queue of one replica, sorted by what the prefix cache holds of each request."""

from heapq import heappop, heappush

from policies.ordering import CacheAwareOrdering
from simcore.core.request import ReadOnlyRequest, Request
from simcore.memory import KVMemory


class CacheAwareQueue:
    """Looks up every waiting request once per step that is planned; in order of arrival if too many wait for that.

    ``_numbers`` is a heap of those that wait and of some that do no more.
    """

    __slots__ = ("_chosen", "_memory", "_numbers", "_order", "_ordering", "_sorted_at_s", "_waiting", "size", "tokens")

    def __init__(self, ordering: CacheAwareOrdering, memory: KVMemory) -> None:
        self._ordering = ordering
        self._memory = memory
        self._waiting: dict[int, Request] = {}
        self._numbers: list[int] = []
        self._order: list[int] = []
        self._sorted_at_s: float | None = None
        self._chosen = -1
        self.size = self.tokens = 0

    def push(self, request: Request, now_s: float) -> None:
        """Enter a new or a preempted request."""
        self._waiting[request.number] = request
        heappush(self._numbers, request.number)
        self.size += 1
        self.tokens += request.tokens_to_compute
        self._sorted_at_s = None

    def first(self, now_s: float) -> Request:
        """The request of best rank, as it was when this step began to be planned."""
        if self._sorted_at_s != now_s:
            self._sorted_at_s = now_s
            self._order = []
            if self.size <= self._ordering.look_ahead:
                ranked = sorted(self._waiting.values(), key=lambda request: self._rank(request, now_s), reverse=True)
                self._order = [request.number for request in ranked]
        if self._order:
            self._chosen = self._order[-1]
        else:
            while self._numbers[0] not in self._waiting:
                heappop(self._numbers)
            self._chosen = self._numbers[0]
        return self._waiting[self._chosen]

    @property
    def first_key(self) -> tuple[float, ...]:
        """The key of the request that ``first`` has just named, where the cache is not looked at."""
        return self._ordering.key(ReadOnlyRequest(self._waiting[self._chosen]), self._sorted_at_s or 0.0)

    def pop(self) -> Request:
        """Take out the request that ``first`` has just named."""
        if self._order:
            self._order.pop()
        request = self._waiting.pop(self._chosen)
        self.size -= 1
        self.tokens -= request.tokens_to_compute
        return request

    def remove(self, request: Request) -> None:
        """Take out a request, wherever it stands."""
        self.size -= 1
        self.tokens -= request.tokens_to_compute
        del self._waiting[request.number]
        if request.number in self._order:
            self._order.remove(request.number)

    def next_promotion_s(self) -> float | None:
        """Nobody is promoted."""
        return None

    def _rank(self, request: Request, now_s: float) -> tuple[tuple[float, ...], int, int]:
        cached_tokens, _ = self._memory.cached_prefix(request)
        rank = self._ordering.rank(ReadOnlyRequest(request), cached_tokens, now_s)
        return rank, request.arrival_ns, request.number
