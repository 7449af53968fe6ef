"""Requests that lost their replica, and when they are sent to another."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from simcore.core.request import Request
from simcore.recording.recorder import Recorder
from simcore.service.clock import Clock
from simcore.service.mortal_replica import MortalReplica

LOST_TOO_OFTEN = "it lost its replica once too often"
NO_BUDGET = "the budget of retries was spent"
NOWHERE = -1
"""In place of the number of a replica."""
_LOOK_AGAIN_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class ResendConfig:
    """How often a request is sent again, and how long after it lost its replica.

    Each further attempt waits ``backoff`` times as long as the one before. All attempts together are at most
    ``budget_share`` of the requests that have arrived, and ``budget_least``; None without such a limit. With
    ``of_rejected`` those that are not let in are sent again too, with ``of_timeouts`` those that wait for too long.
    """

    attempts: int
    delay_ns: int
    backoff: float = 1.0
    budget_share: float | None = None
    budget_least: int = 0
    of_rejected: bool = False
    of_timeouts: bool = False


@dataclass(slots=True)
class Resending:
    """Sends requests again, until one has used up its attempts or all have used up the budget.

    A request is never sent where an earlier copy of it is still to be taken off when the step in progress ends.

    Source of the budget: the RetryBudget of Finagle, and Envoy's after it.
    """

    clock: Clock
    recorder: Recorder
    config: ResendConfig
    send: Callable[[Request, int], None] = lambda request, output_tokens: None
    receive: Callable[[Request, int], None] = lambda request, output_tokens: None
    goes_on: Callable[[Request, MortalReplica], bool] = lambda request, lost: False
    on_dropped: Callable[[Request], None] = lambda request: None
    arrived: int = 0
    attempts: int = 0
    _attempts_of: Counter[int] = field(default_factory=Counter)
    _left: dict[int, list[MortalReplica]] = field(default_factory=dict)
    _between: dict[int, tuple[Request, int]] = field(default_factory=dict)

    def again(self, request: Request, output_tokens: int, lost: MortalReplica) -> bool:
        """Have a request sent again that has lost its replica; False if it is given up instead.

        One that is on another replica as well goes on there.
        """
        if self.goes_on(request, lost):
            return True
        self.left(request, lost)
        reason = self._attempt(request, lost.index, partial(self._send, request, output_tokens))
        if reason is not None:
            self.recorder.request_rejected(request, lost.index, self.clock.now_ns, reason)
            self.on_dropped(request)
            if request.done is not None:
                request.done(False)
        return reason is None

    def turned_away(self, request: Request, output_tokens: int) -> bool:
        """Have a request sent again that was not let in; False if it is given up instead."""
        if not self.config.of_rejected:
            return False
        return self._attempt(request, NOWHERE, partial(self._receive, request, output_tokens)) is None

    def asked_again(self, request: Request, output_tokens: int, left: MortalReplica) -> None:
        """Have a request sent as if it was new, which was taken from a replica since its client has waited too long.

        One that ``is_spent`` has no such attempt.
        """
        self.left(request, left)
        self._attempt(request, left.index, partial(self._receive, request, output_tokens))

    def is_spent(self, request: Request) -> bool:
        """Whether there is no further attempt of a request."""
        return self._attempts_of[request.number] >= self.config.attempts or self._over_budget

    def left(self, request: Request, replica: MortalReplica) -> None:
        """Take note that a request, or a copy of it, was taken from a replica."""
        self._left.setdefault(request.number, []).append(replica)

    def close(self) -> None:
        """Hand to the recorder those that the end of the run found between two attempts."""
        for request, replica in self._between.values():
            self.recorder.request_unfinished(request, replica)

    def next_delay_ns(self, request: Request) -> int:
        """How long the next attempt of a request waits."""
        return self._delay_ns(self._attempts_of[request.number] + 1)

    def _delay_ns(self, attempts: int) -> int:
        return round(self.config.delay_ns * self.config.backoff ** (attempts - 1))

    @property
    def _over_budget(self) -> bool:
        share = self.config.budget_share
        return share is not None and self.attempts >= max(share * self.arrived, self.config.budget_least)

    def _attempt(self, request: Request, replica: int, action: Callable[[], None]) -> str | None:
        """Do something with a request when its next attempt is due; says why not, if there is none."""
        self._attempts_of[request.number] += 1
        attempts = self._attempts_of[request.number]
        if attempts > self.config.attempts:
            return LOST_TOO_OFTEN
        if self._over_budget:
            return NO_BUDGET
        self.attempts += 1
        delay_ns = self._delay_ns(attempts)
        self._between[request.number] = request, replica
        if delay_ns:
            self.clock.call_at(self.clock.now_ns + delay_ns, action)
        else:
            action()
        return None

    def _send(self, request: Request, output_tokens: int) -> None:
        self._hand_on(request, output_tokens, self.send)

    def _receive(self, request: Request, output_tokens: int) -> None:
        self._hand_on(request, output_tokens, self.receive)

    def _hand_on(self, request: Request, output_tokens: int, to: Callable[[Request, int], None]) -> None:
        """Have the router take a request, once it is off all replicas."""
        if any(replica.is_leaving(request) for replica in self._left.get(request.number, ())):
            later = partial(self._hand_on, request, output_tokens, to)
            self.clock.call_at(self.clock.now_ns + _LOOK_AGAIN_NS, later)
            return
        del self._between[request.number]
        to(request, output_tokens)
