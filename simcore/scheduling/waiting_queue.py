"""The queue of one replica, sorted by an ordering policy."""

from heapq import heappop, heappush

from policies.ordering import Ordering
from simcore.request import Request


class WaitingQueue:
    """Requests that hold no KV memory, the one to admit next in front; O(log n) to enter and to leave."""

    __slots__ = ("_ordering", "heap")

    def __init__(self, ordering: Ordering) -> None:
        self._ordering = ordering
        self.heap: list[tuple[tuple[float, ...], int, Request]] = []
        """A binary heap; empty if and only if nobody waits."""

    def __len__(self) -> int:
        return len(self.heap)

    def push(self, request: Request, now_s: float) -> None:
        """Enter a new or a preempted request."""
        heappush(self.heap, (self._ordering.key(request, now_s), request.number, request))

    def first(self) -> Request:
        """The request to admit next."""
        return self.heap[0][2]

    def pop(self) -> Request:
        """Take out the request to admit next."""
        return heappop(self.heap)[2]
