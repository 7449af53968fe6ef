"""The keys of running requests, for orderings under which waiting ones may displace them."""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from operator import neg

from policies.horizon import FOREVER
from policies.ordering import Ordering
from simcore.core.decode_pool import DecodePool
from simcore.core.request import ReadOnlyRequest, Request
from simcore.memory import KVMemory

_SPARE_ENTRIES = 64

Requests = Mapping[int, Request]


class RunningKeys:
    """Takes the keys of all running requests whenever it is asked: right for any ordering, and walks the batch.

    Those that are ``ending`` give way to nobody: they are gone after the step that is being planned.
    """

    def __init__(self, ordering: Ordering, memory: KVMemory, running: Requests, ending: Requests) -> None:
        self._ordering = ordering
        self._memory = memory
        self._running = running
        self._ending = ending

    @property
    def stable_steps(self) -> int:
        """Decode steps in which nobody need be displaced who need not be now: what the ordering states."""
        return 1 if self._ordering.changes_with_time else self._ordering.stable_steps

    def key(self, request: Request, now_s: float) -> tuple[float, ...]:
        """The key of a request as of now."""
        return self._ordering.key(ReadOnlyRequest(request), now_s)

    def decodes(self, request: Request, now_s: float) -> None:
        """Take note of a request that joined the decode pool, or was moved in it."""

    def refresh(self, now_s: float) -> None:
        """Take anew the keys that may have risen by now."""

    def least_urgent(self, candidate: Request, now_s: float) -> Request | None:
        """The request with the greatest key that holds memory of use to the candidate; of equals the last to arrive."""
        running, ending = self._running.values(), self._ending
        candidates: Iterable[Request] = running
        if ending or self._memory.partitioned:
            apart = self._memory.apart
            candidates = (each for each in running if each.number not in ending and not apart(each, candidate))
        return max(candidates, key=lambda request: (self.key(request, now_s), request.number), default=None)


class FollowedKeys(RunningKeys):
    """Keeps decoding requests sorted by key, where the ordering foresees how a key changes meanwhile.

    A key that falls with each token is kept with the steps of the decode pool added, which makes it constant. One that
    may rise is taken anew in the step in which it may. An entry of a request that has left the pool, or was moved in
    it, is recognised by admission and origin, as the executor does; one that an entry with a greater key has replaced
    never comes to the front before that.
    """

    def __init__(
        self,
        ordering: Ordering,
        memory: KVMemory,
        running: Requests,
        ending: Requests,
        prefilling: Requests,
        pool: DecodePool,
    ) -> None:
        super().__init__(ordering, memory, running, ending)
        self._prefilling = prefilling
        self._pool = pool
        self._by_key: list[tuple[tuple[float, ...], int, int, int, Request]] = []
        self._rises: list[tuple[int, int, Request]] = []
        self._most_entries = _SPARE_ENTRIES

    @property
    def stable_steps(self) -> int:
        """Until a key may rise."""
        return self._rises[0][0] - self._pool.steps if self._rises else FOREVER

    def decodes(self, request: Request, now_s: float) -> None:
        """Enter a request."""
        steps, view = self._pool.steps, ReadOnlyRequest(request)
        key = self._ordering.key(view, now_s)
        if self._ordering.falls_by_token:
            key = (key[0] + steps, *key[1:])
        by_key = self._by_key
        if len(by_key) > self._most_entries:
            by_key[:] = [entry for entry in by_key if self._stands(entry)]
            heapify(by_key)
            self._most_entries = 2 * len(by_key) + _SPARE_ENTRIES
        greatest_first = tuple(map(neg, key))
        heappush(by_key, (greatest_first, -request.number, request.admission, request.origin, request))
        tokens = self._ordering.tokens_until_rise(view)
        if tokens != FOREVER:
            heappush(self._rises, (steps + tokens, request.admission, request))

    def refresh(self, now_s: float) -> None:
        """Take anew the keys that may have risen by now."""
        steps, rises = self._pool.steps, self._rises
        while rises and (rises[0][0] <= steps or self._has_left(*rises[0])):
            entry = heappop(rises)
            if not self._has_left(*entry):
                self.decodes(entry[2], now_s)

    def least_urgent(self, candidate: Request, now_s: float) -> Request | None:
        """The running request with the greatest key; of equals the one that arrived last."""
        by_key = self._by_key
        while by_key and not self._stands(by_key[0]):
            heappop(by_key)
        candidates = [*self._prefilling.values()]
        if by_key:
            candidates.append(by_key[0][4])
        return max(candidates, key=lambda request: (self.key(request, now_s), request.number), default=None)

    @staticmethod
    def _has_left(_: int, admission: int, request: Request) -> bool:
        return request.pool is None or request.admission != admission

    @staticmethod
    def _stands(entry: tuple[tuple[float, ...], int, int, int, Request]) -> bool:
        _, _, admission, origin, request = entry
        return request.pool is not None and (request.admission, request.origin) == (admission, origin)


def running_keys(
    ordering: Ordering,
    memory: KVMemory,
    running: Requests,
    ending: Requests,
    prefilling: Requests,
    pool: DecodePool,
) -> RunningKeys:
    """The keys of a scheduler's running requests: followed where that is possible."""
    learns = any(predictor.learns for predictor in ordering.predictors)
    if ordering.foresees_rises and not learns and not memory.partitioned:
        return FollowedKeys(ordering, memory, running, ending, prefilling, pool)
    return RunningKeys(ordering, memory, running, ending)
