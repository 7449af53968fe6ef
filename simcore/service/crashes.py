"""Replicas that crash and restart, and what becomes of their requests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from simcore.core.request import Request
from simcore.recording.recorder import Recorder
from simcore.service.clock import Clock
from simcore.service.mortal_replica import MortalReplica
from simcore.service.stage import Stage

CRASHED = "its replica crashed once too often"
Resend = Callable[[Request, int], None]


@dataclass(frozen=True, slots=True)
class CrashPlan:
    """When a replica crashes, and when it takes requests again, if ever."""

    place: int
    at_ns: int
    restart_ns: int | None = None


@dataclass(slots=True)
class CrashRecord:
    """What one crash did. One that finds its replica down already does nothing (``void``)."""

    plan: CrashPlan
    interrupted: int = 0
    given_up: int = 0
    void: bool = False


@dataclass(frozen=True, slots=True)
class RetryConfig:
    """How often a request is sent again, and how long after a crash."""

    attempts: int
    delay_ns: int


@dataclass(slots=True)
class Crashes:
    """Lets replicas of a stage crash as planned, and has their open requests sent to others.

    The process that takes a replica's place is there at once, empty, but gets no requests before it has restarted.
    """

    clock: Clock
    stage: Stage
    recorder: Recorder
    retries: RetryConfig
    rebuild: Callable[[int], MortalReplica]
    resend: Resend = lambda request, output_tokens: None
    on_replaced: Callable[[int], None] = lambda place: None
    on_dropped: Callable[[Request], None] = lambda request: None
    records: list[CrashRecord] = field(default_factory=list)
    _attempts: dict[int, int] = field(default_factory=dict)
    _between: dict[int, tuple[Request, int]] = field(default_factory=dict)

    def schedule(self, plans: Sequence[CrashPlan]) -> None:
        """Have these crashes happen."""
        for plan in plans:
            record = CrashRecord(plan)
            self.records.append(record)
            self.clock.call_at(plan.at_ns, partial(self._crash, record))

    def close(self) -> None:
        """Hand to the recorder those that the end of the run found between two attempts."""
        for request, replica in self._between.values():
            self.recorder.request_unfinished(request, replica)

    def _crash(self, record: CrashRecord) -> None:
        stage, place = self.stage, record.plan.place
        record.void = not stage.is_up(place)
        if record.void:
            return
        replica = stage.replicas[place]
        assert isinstance(replica, MortalReplica)
        lost = replica.die()
        stage.replace(place, self.rebuild(place), up=False)
        self.on_replaced(place)
        if record.plan.restart_ns is not None:
            self.clock.call_at(record.plan.restart_ns, partial(stage.set_up, place))
        record.interrupted = len(lost)
        for request, output_tokens in lost:
            stage.ended(request, place)
            attempts = self._attempts[request.number] = self._attempts.get(request.number, 0) + 1
            if attempts > self.retries.attempts:
                record.given_up += 1
                self._reject(request, replica.index)
            elif self.retries.delay_ns:
                self._between[request.number] = request, replica.index
                again_ns = self.clock.now_ns + self.retries.delay_ns
                self.clock.call_at(again_ns, partial(self._again, request, output_tokens))
            else:
                self.resend(request, output_tokens)

    def _again(self, request: Request, output_tokens: int) -> None:
        del self._between[request.number]
        self.resend(request, output_tokens)

    def _reject(self, request: Request, replica: int) -> None:
        self.recorder.request_rejected(request, replica, self.clock.now_ns, CRASHED)
        self.on_dropped(request)
        if request.done is not None:
            request.done(False)
