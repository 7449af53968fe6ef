"""Books of what each replica has to do, kept by a router that hears of every request sent and ended."""

from collections.abc import Set
from heapq import heapify, heappop, heappush


class Loads:
    """A load per replica, and which has the least; O(log replicas) a change, amortised.

    Among equals the least is the one that got a request longest ago, at first the one of the lowest index. One that is
    ``closed`` has the least only where all are.
    """

    __slots__ = ("_closed", "_heap", "_turn", "_turns", "of", "total")

    def __init__(self, replicas: int, closed: Set[int] = frozenset()) -> None:
        self._closed = closed
        self.of = [0] * replicas
        self.total = 0
        self._turns = [replica - replicas for replica in range(replicas)]
        self._turn = 0
        self._heap = [(0, turn, replica) for replica, turn in enumerate(self._turns)]

    @property
    def least(self) -> int:
        """The replica with the least load."""
        heap = self._heap
        while heap and not self._stands(heap[0]):
            heappop(heap)
        return heap[0][2] if heap else min(range(len(self.of)), key=self.key)

    @property
    def open_replicas(self) -> int:
        """How many take requests."""
        return len(self.of) - len(self._closed)

    def is_open(self, replica: int) -> bool:
        """Whether a replica takes requests."""
        return replica not in self._closed

    def note_open(self, replica: int) -> None:
        """Look anew whether a replica takes requests."""
        self._change(replica, 0)

    def key(self, replica: int) -> tuple[int, int]:
        """By what replicas are compared: the load, then when it last grew."""
        return self.of[replica], self._turns[replica]

    def grow(self, replica: int, amount: int) -> None:
        """Add to the load of a replica that gets a request."""
        self._turns[replica] = self._turn
        self._turn += 1
        self._change(replica, amount)

    def shrink(self, replica: int, amount: int) -> None:
        """Take from the load of a replica."""
        self._change(replica, -amount)

    def _change(self, replica: int, amount: int) -> None:
        self.of[replica] += amount
        self.total += amount
        heap = self._heap
        heappush(heap, (*self.key(replica), replica))
        if len(heap) > 4 * len(self.of) + 64:
            heap[:] = [(*self.key(each), each) for each in range(len(self.of))]
            heapify(heap)

    def _stands(self, entry: tuple[int, int, int]) -> bool:
        load, turn, replica = entry
        return self.of[replica] == load and self._turns[replica] == turn and replica not in self._closed
