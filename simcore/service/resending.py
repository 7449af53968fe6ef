"""Requests that lost their replica, and when they are sent to another."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from simcore.core.request import Request
from simcore.recording.recorder import Recorder
from simcore.service.clock import Clock
from simcore.service.mortal_replica import MortalReplica

LOST_TOO_OFTEN = "it lost its replica once too often"
NO_BUDGET = "the budget of retries was spent"
_LOOK_AGAIN_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class ResendConfig:
    """How often a request is sent again, and how long after it lost its replica.

    Each further attempt waits ``backoff`` times as long as the one before. All attempts together are at most
    ``budget_share`` of the requests that have arrived, and ``budget_least``; None without such a limit.
    """

    attempts: int
    delay_ns: int
    backoff: float = 1.0
    budget_share: float | None = None
    budget_least: int = 0


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
    on_dropped: Callable[[Request], None] = lambda request: None
    arrived: int = 0
    attempts: int = 0
    _lost_by: dict[int, list[MortalReplica]] = field(default_factory=dict)
    _between: dict[int, tuple[Request, int]] = field(default_factory=dict)

    def again(self, request: Request, output_tokens: int, lost: MortalReplica) -> bool:
        """Have a request sent again that has lost its replica; False if it is given up instead."""
        lost_by = self._lost_by.setdefault(request.number, [])
        lost_by.append(lost)
        if len(lost_by) > self.config.attempts or self._over_budget:
            reason = LOST_TOO_OFTEN if len(lost_by) > self.config.attempts else NO_BUDGET
            self.recorder.request_rejected(request, lost.index, self.clock.now_ns, reason)
            self.on_dropped(request)
            if request.done is not None:
                request.done(False)
            return False
        self.attempts += 1
        delay_ns = round(self.config.delay_ns * self.config.backoff ** (len(lost_by) - 1))
        self._between[request.number] = request, lost.index
        if delay_ns:
            self.clock.call_at(self.clock.now_ns + delay_ns, partial(self._send, request, output_tokens))
        else:
            self._send(request, output_tokens)
        return True

    def close(self) -> None:
        """Hand to the recorder those that the end of the run found between two attempts."""
        for request, replica in self._between.values():
            self.recorder.request_unfinished(request, replica)

    @property
    def _over_budget(self) -> bool:
        share = self.config.budget_share
        return share is not None and self.attempts >= max(share * self.arrived, self.config.budget_least)

    def _send(self, request: Request, output_tokens: int) -> None:
        if any(replica.is_leaving(request) for replica in self._lost_by[request.number]):
            self.clock.call_at(self.clock.now_ns + _LOOK_AGAIN_NS, partial(self._send, request, output_tokens))
            return
        del self._between[request.number]
        self.send(request, output_tokens)
