"""Letting more urgent requests take the place of running ones."""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from operator import neg
from typing import TYPE_CHECKING

from policies.batching import StepLimits
from policies.horizon import FOREVER
from policies.ordering import Ordering
from simcore.core.request import Request

if TYPE_CHECKING:
    from simcore.scheduling.scheduler_state import SchedulerState

_SPARE_ENTRIES = 64


class Displacement:
    """Preempts running requests until the most urgent waiting one has room, or none that runs is less urgent."""

    __slots__ = ("_had_room", "_running", "_scheduler")

    def __init__(self, scheduler: "SchedulerState") -> None:
        ordering = scheduler.ordering
        self._scheduler = scheduler
        self._had_room = False
        stated = type(ordering).tokens_until_rise is not Ordering.tokens_until_rise
        followed = stated and not any(predictor.learns for predictor in ordering.predictors)
        followed = followed and not scheduler.memory.partitioned
        self._running = _FollowedKeys(scheduler) if followed else _KeysTakenAnew(scheduler)

    @property
    def stable_steps(self) -> int:
        """Decode steps in which nobody need be displaced who need not be now; as ``make_room`` has just found it."""
        # Whoever is first could run but was not let in, and decodes use up the room.
        return 1 if self._had_room else self._running.stable_steps

    def decodes(self, request: Request, now_s: float) -> None:
        """Take note of a request that joined the decode pool, or was moved in it."""
        self._running.decodes(request, now_s)

    def make_room(self, limits: StepLimits, now_s: float) -> list[Request]:
        """Preempt whom the requests that wait displace; returns them in that order."""
        scheduler = self._scheduler
        key, memory = scheduler.ordering.key, scheduler.memory
        self._running.refresh(now_s)
        displaced: list[Request] = []
        self._had_room = False
        while scheduler.running:
            candidate = scheduler.waiting.first(now_s)
            blocks = scheduler.blocks_to_admit(candidate)
            if len(scheduler.running) < limits.max_running_requests and blocks <= memory.free_for(candidate):
                self._had_room = True
                break
            worst = self._running.least_urgent(candidate, now_s)
            # The key with which the candidate stands in the queue: taken anew it might be less, and whoever is
            # displaced would stand before it.
            if worst is None or key(worst, now_s) <= scheduler.waiting.first_key:
                break
            scheduler.preempt(worst, now_s)
            displaced.append(worst)
        return displaced


class _KeysTakenAnew:
    """Takes the keys of all running requests whenever it is asked: right for any ordering, and walks the batch."""

    def __init__(self, scheduler: "SchedulerState") -> None:
        self._scheduler = scheduler

    @property
    def stable_steps(self) -> int:
        """What the ordering states."""
        return self._scheduler.ordering.stable_steps

    def decodes(self, request: Request, now_s: float) -> None:
        """Nothing to note."""

    def refresh(self, now_s: float) -> None:
        """Nothing to note."""

    def least_urgent(self, candidate: Request, now_s: float) -> Request | None:
        """The request with the greatest key that holds memory of use to the candidate; of equals the last to arrive."""
        key, memory = self._scheduler.ordering.key, self._scheduler.memory
        running: Iterable[Request] = self._scheduler.running.values()
        if memory.partitioned:
            running = (request for request in running if not memory.apart(request, candidate))
        return max(running, key=lambda request: (key(request, now_s), request.number), default=None)


class _FollowedKeys(_KeysTakenAnew):
    """Keeps decoding requests sorted by key, where the ordering says how a key changes meanwhile.

    A key that falls with each token is kept with the steps of the decode pool added, which makes it constant. One that
    may rise is taken anew in the step in which it may. An entry of a request that has left the pool, or was moved in
    it, is recognised by admission and origin, as the executor does; one that an entry with a greater key has replaced
    never comes to the front before that.
    """

    def __init__(self, scheduler: "SchedulerState") -> None:
        super().__init__(scheduler)
        self._by_key: list[tuple[tuple[float, ...], int, int, int, Request]] = []
        self._rises: list[tuple[int, int, Request]] = []
        self._most_entries = _SPARE_ENTRIES

    @property
    def stable_steps(self) -> int:
        """Until a key may rise."""
        return self._rises[0][0] - self._scheduler.pool.steps if self._rises else FOREVER

    def decodes(self, request: Request, now_s: float) -> None:
        """Enter a request."""
        scheduler, ordering = self._scheduler, self._scheduler.ordering
        key = ordering.key(request, now_s)
        if ordering.falls_by_token:
            key = (key[0] + scheduler.pool.steps, *key[1:])
        by_key = self._by_key
        if len(by_key) > self._most_entries:
            by_key[:] = [entry for entry in by_key if self._stands(entry)]
            heapify(by_key)
            self._most_entries = 2 * len(by_key) + _SPARE_ENTRIES
        greatest_first = tuple(map(neg, key))
        heappush(by_key, (greatest_first, -request.number, request.admission, request.origin, request))
        tokens = ordering.tokens_until_rise(request)
        if tokens != FOREVER:
            heappush(self._rises, (scheduler.pool.steps + tokens, request.admission, request))

    def refresh(self, now_s: float) -> None:
        """Take anew the keys that may have risen by now."""
        steps, rises = self._scheduler.pool.steps, self._rises
        while rises and (rises[0][0] <= steps or self._has_left(*rises[0])):
            entry = heappop(rises)
            if not self._has_left(*entry):
                self.decodes(entry[2], now_s)

    def least_urgent(self, candidate: Request, now_s: float) -> Request | None:
        """The running request with the greatest key; of equals the one that arrived last."""
        key, by_key = self._scheduler.ordering.key, self._by_key
        while by_key and not self._stands(by_key[0]):
            heappop(by_key)
        candidates = [*self._scheduler.prefilling.values()]
        if by_key:
            candidates.append(by_key[0][4])
        return max(candidates, key=lambda request: (key(request, now_s), request.number))

    @staticmethod
    def _has_left(_: int, admission: int, request: Request) -> bool:
        return request.pool is None or request.admission != admission

    @staticmethod
    def _stands(entry: tuple[tuple[float, ...], int, int, int, Request]) -> bool:
        _, _, admission, origin, request = entry
        return request.pool is not None and (request.admission, request.origin) == (admission, origin)
