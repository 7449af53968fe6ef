"""The queue of one replica, sorted by an ordering policy."""

from heapq import heapify, heappop, heappush
from itertools import count
from typing import Protocol

from policies.ordering import Ordering
from simcore.request import UNSET, Request


class WaitingQueue(Protocol):
    """Requests that hold no KV memory, the one to admit next in front."""

    size: int
    """How many wait."""

    def push(self, request: Request, now_s: float) -> None:
        """Enter a new or a preempted request."""

    def first(self, now_s: float) -> Request:
        """The request to admit next."""

    @property
    def first_key(self) -> tuple[float, ...]:
        """The key with which the request stands there that ``first`` has just named."""

    def pop(self) -> Request:
        """Take out the request that ``first`` has just named."""

    def remove(self, request: Request) -> None:
        """Take out a request that waits, wherever it stands."""

    def next_promotion_s(self) -> float | None:
        """When the order changes with time alone, None if it does not."""


class RequestHeap:
    """Requests by key, the least in front; O(log n) to enter and to leave, amortised.

    A place in the queue is marked by a ticket that the request carries. An entry whose ticket its request no longer
    carries, because it left from elsewhere or has a better place, is dropped when it comes to the front.
    """

    __slots__ = ("_entries", "_stale")

    def __init__(self) -> None:
        self._stale = 0
        self._entries: list[tuple[tuple[float, ...], int, int, Request]] = []

    def __bool__(self) -> bool:
        return bool(self._entries)

    def push(self, key: tuple[float, ...], request: Request) -> None:
        """Enter a request that carries its ticket; equal keys keep the order of arrival."""
        heappush(self._entries, (key, request.number, request.ticket, request))

    @property
    def first(self) -> Request:
        """The request in front; there must be one."""
        return self._entries[0][3]

    @property
    def first_key(self) -> tuple[float, ...]:
        """Its key."""
        return self._entries[0][0]

    def pop(self) -> Request:
        """Take out the request in front, its ticket included."""
        request = heappop(self._entries)[3]
        request.ticket = UNSET
        if self._stale:
            self._settle()
        return request

    def discard(self) -> None:
        """Take note that one of the tickets entered here is not carried any more."""
        self._stale += 1
        if 2 * self._stale > len(self._entries):
            self._entries = [entry for entry in self._entries if entry[2] == entry[3].ticket]
            heapify(self._entries)
            self._stale = 0
        else:
            self._settle()

    def _settle(self) -> None:
        """Bring a request that still waits to the front."""
        entries = self._entries
        while entries and entries[0][2] != entries[0][3].ticket:
            heappop(entries)
            self._stale -= 1


class KeyedQueue:
    """Sorts all requests by one key; one that has waited for as long as the ordering says is promoted."""

    __slots__ = ("_heap", "_ordering", "_promotes_after_s", "_since", "_tickets", "size")

    def __init__(self, ordering: Ordering) -> None:
        self._ordering = ordering
        self._heap = RequestHeap()
        self._since = RequestHeap()
        self._promotes_after_s = ordering.promotes_after_s
        self._tickets = count()
        self.size = 0

    def push(self, request: Request, now_s: float) -> None:
        """Enter a new or a preempted request."""
        request.ticket = next(self._tickets)
        self._heap.push(self._ordering.key(request, now_s), request)
        if self._promotes_after_s is not None:
            self._since.push((now_s + self._promotes_after_s,), request)
        self.size += 1

    def first(self, now_s: float) -> Request:
        """The request with the smallest key, once those that have waited for long are promoted."""
        while self._since and self._since.first_key[0] <= now_s:
            request = self._since.pop()
            self._ordering.promoted(request)
            request.ticket = next(self._tickets)
            self._heap.push(self._ordering.key(request, now_s), request)
            self._heap.discard()
        return self._heap.first

    @property
    def first_key(self) -> tuple[float, ...]:
        """The smallest key."""
        return self._heap.first_key

    def pop(self) -> Request:
        """Take out the request with the smallest key."""
        self.size -= 1
        request = self._heap.pop()
        if self._promotes_after_s is not None:
            self._since.discard()
        return request

    def remove(self, request: Request) -> None:
        """Take out a request, wherever it stands."""
        self.size -= 1
        request.ticket = UNSET
        self._heap.discard()
        self._since.discard()

    def next_promotion_s(self) -> float | None:
        """When the request that has waited longest is promoted."""
        return self._since.first_key[0] if self._since else None
