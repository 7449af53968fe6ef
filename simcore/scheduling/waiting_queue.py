"""The queue of one replica, sorted by an ordering policy."""

from heapq import heappop, heappush
from typing import Protocol

from policies.ordering import Ordering
from simcore.request import Request

Heap = list[tuple[tuple[float, ...], int, Request]]


class WaitingQueue(Protocol):
    """Requests that hold no KV memory, the one to admit next in front."""

    size: int
    """How many wait."""

    def push(self, request: Request, now_s: float) -> None:
        """Enter a new or a preempted request."""

    def first(self, now_s: float) -> Request:
        """The request to admit next."""

    def pop(self) -> Request:
        """Take out the request that ``first`` has just named."""


class KeyedQueue:
    """Sorts all requests by one key; O(log n) to enter and to leave."""

    __slots__ = ("_heap", "_ordering", "size")

    def __init__(self, ordering: Ordering) -> None:
        self._ordering = ordering
        self._heap: Heap = []
        self.size = 0

    def push(self, request: Request, now_s: float) -> None:
        """Enter a new or a preempted request."""
        heappush(self._heap, (self._ordering.key(request, now_s), request.number, request))
        self.size += 1

    def first(self, now_s: float) -> Request:
        """The request with the smallest key."""
        return self._heap[0][2]

    def pop(self) -> Request:
        """Take out the request with the smallest key."""
        self.size -= 1
        return heappop(self._heap)[2]
