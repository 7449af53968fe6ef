"""Clients that give up when an answer takes too long."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

from simpy import Event

from policies.horizon import FOREVER
from simcore.core.request import UNSET, Request
from simcore.service.clock import ARRIVAL, Alarm, Clock
from simcore.workload.batch import NO_TIMEOUT_NS

NO_FIRST_TOKEN = "the client gave up before the first token"
NO_LAST_TOKEN = "the client gave up before the last token"


class Holder(Protocol):
    """Whoever has a request: a replica, or what moves it from one to another."""

    def has(self, request: Request) -> bool:
        """Whether a request is open here."""

    def give_up(self, request: Request, reason: str) -> None:
        """Abort an open request whose client gives up now."""


_Due = tuple[int, int, int, str, Request, Holder]
"""When a client gives up, the number of its request, that of this entry, why, the request, and who has it."""


class ClientTimeouts:
    """Watches requests whose clients give up, and has them aborted when it is time to.

    A token that comes in the very nanosecond is in time. There is one alarm at a time, for whoever is due first.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: list[_Due] = []
        self._entries = 0
        self._alarm_ns = FOREVER
        self.asks_again: Callable[[Request, Holder], bool] = lambda request, holder: False
        """Told of a request without a token that is due; returns whether its client asks again instead of giving up."""

    def watch(self, request: Request, holder: Holder) -> None:
        """Follow a request that somebody has just taken in; who would have given up before does so now."""
        for due_ns, reason in ((request.first_token_due_ns, NO_FIRST_TOKEN), (request.due_ns, NO_LAST_TOKEN)):
            if due_ns < NO_TIMEOUT_NS:
                heappush(self._due, (due_ns, request.number, self._entries, reason, request, holder))
                self._entries += 1
        self._set_alarm()

    def _set_alarm(self) -> None:
        due = self._due
        while due and not self._waits(due[0]):
            heappop(due)
        if due and due[0][0] < self._alarm_ns:
            self._alarm_ns = due[0][0]
            Alarm(self._clock, max(self._alarm_ns - self._clock.now_ns, 0), ARRIVAL).callbacks.append(self._ring)

    def _ring(self, alarm: Event) -> None:
        now_ns, due = self._clock.now_ns, self._due
        if self._alarm_ns <= now_ns:
            self._alarm_ns = FOREVER
        while due and due[0][0] <= now_ns:
            entry = heappop(due)
            if self._waits(entry):
                _, _, _, reason, request, holder = entry
                if reason is NO_LAST_TOKEN or not self.asks_again(request, holder):
                    holder.give_up(request, reason)
        self._set_alarm()

    @staticmethod
    def _waits(entry: _Due) -> bool:
        """Whether the client still waits for what it would give up on."""
        *_, reason, request, holder = entry
        return holder.has(request) and (reason is NO_LAST_TOKEN or request.first_token_ns == UNSET)
