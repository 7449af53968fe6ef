"""The queue of one replica, sorted by an ordering policy."""

from heapq import heapify, heappop, heappush
from itertools import count
from typing import Protocol

from policies.ordering import Ordering
from simcore.core.request import UNSET, ReadOnlyRequest, Request


class WaitingQueue(Protocol):
    """Requests that hold no KV memory, the one to admit next in front."""

    size: int
    """How many wait."""
    tokens: int
    """What they have to compute."""

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

    __slots__ = ("_stale", "entries")

    def __init__(self) -> None:
        self._stale = 0
        self.entries: list[tuple[tuple[float, ...], int, int, Request]] = []
        """A heap of keys, numbers, tickets and requests; the first is never stale."""

    def push(self, key: tuple[float, ...], request: Request) -> None:
        """Enter a request that carries its ticket; equal keys keep the order of arrival."""
        heappush(self.entries, (key, request.number, request.ticket, request))

    def pop(self) -> Request:
        """Take out the request in front, its ticket included."""
        request = heappop(self.entries)[3]
        request.ticket = UNSET
        if self._stale:
            self._settle()
        return request

    def discard(self) -> None:
        """Take note that one of the tickets entered here is not carried any more."""
        self._stale += 1
        if 2 * self._stale > len(self.entries):
            self.entries[:] = [entry for entry in self.entries if entry[2] == entry[3].ticket]
            heapify(self.entries)
            self._stale = 0
        else:
            self._settle()

    def _settle(self) -> None:
        """Bring a request that still waits to the front."""
        entries = self.entries
        while entries and entries[0][2] != entries[0][3].ticket:
            heappop(entries)
            self._stale -= 1


class KeyedQueue:
    """Sorts all requests by one key; one that has waited for as long as the ordering says is promoted."""

    __slots__ = ("_heap", "_ordering", "_since", "_tickets", "size", "tokens")

    def __init__(self, ordering: Ordering) -> None:
        self._ordering = ordering
        self._heap = RequestHeap()
        self._since = None if ordering.promotes_after_s is None else Seniority(ordering.promotes_after_s)
        self._tickets = count()
        self.size = self.tokens = 0

    def push(self, request: Request, now_s: float) -> None:
        """Enter a new or a preempted request."""
        request.ticket = next(self._tickets)
        self._heap.push(self._key(request, now_s), request)
        if self._since is not None:
            self._since.push((now_s,), request)
        self.size += 1
        self.tokens += request.tokens_to_compute

    def first(self, now_s: float) -> Request:
        """The request with the smallest key, once those that have waited for long are promoted."""
        if self._since is not None:
            self._promote(self._since, now_s)
        return self._heap.entries[0][3]

    @property
    def first_key(self) -> tuple[float, ...]:
        """The smallest key."""
        return self._heap.entries[0][0]

    def pop(self) -> Request:
        """Take out the request with the smallest key."""
        request = self._heap.pop()
        self.size -= 1
        self.tokens -= request.tokens_to_compute
        if self._since is not None:
            self._since.discard()
        return request

    def remove(self, request: Request) -> None:
        """Take out a request, wherever it stands."""
        self.size -= 1
        self.tokens -= request.tokens_to_compute
        request.ticket = UNSET
        self._heap.discard()
        if self._since is not None:
            self._since.discard()

    def next_promotion_s(self) -> float | None:
        """When the request that has waited longest is promoted."""
        return None if self._since is None else self._since.next_promotion_s()

    def _promote(self, since: "Seniority", now_s: float) -> None:
        while (due_s := since.next_promotion_s()) is not None and due_s <= now_s:
            request = since.pop()
            self._ordering.promoted(ReadOnlyRequest(request))
            request.ticket = next(self._tickets)
            self._heap.push(self._key(request, now_s), request)
            self._heap.discard()

    def _key(self, request: Request, now_s: float) -> tuple[float, ...]:
        key = self._ordering.key(ReadOnlyRequest(request), now_s)
        return (*key, request.ticket) if self._ordering.requeues_last else key


class Seniority(RequestHeap):
    """Requests that are not promoted yet, by when they were entered; each is promoted ``after_s`` later."""

    __slots__ = ("_after_s",)

    def __init__(self, after_s: float) -> None:
        super().__init__()
        self._after_s = after_s

    def next_promotion_s(self) -> float | None:
        """When the first is, None if nobody is left."""
        return self.entries[0][0][0] + self._after_s if self.entries else None
