"""Replicas that crash and restart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from simcore.service.clock import Clock
from simcore.service.fault_record import FaultRecord
from simcore.service.mortal_replica import MortalReplica
from simcore.service.resending import Resending
from simcore.service.stage import Stage

CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Poison:
    """Requests, by number, that crash whatever replica computes them, and how long it is down; None for good."""

    is_poisoned: Callable[[int], bool]
    restart_after_ns: int | None


@dataclass(slots=True)
class Crashes:
    """Lets replicas of a stage crash, and has their open requests sent to others.

    The process that takes a replica's place is there at once, empty, but gets no requests before it has restarted.
    """

    clock: Clock
    stage: Stage
    resending: Resending
    rebuild: Callable[[int], MortalReplica]
    on_replaced: Callable[[int], None] = lambda place: None
    records: list[FaultRecord] = field(default_factory=list)
    _poisons: Sequence[Poison] = ()

    def schedule(self, record: FaultRecord) -> None:
        """Have a crash happen."""
        self.records.append(record)
        self.clock.call_at(record.at_ns, partial(self._crash, record))

    def poison(self, poisons: Sequence[Poison]) -> None:
        """Let requests crash the replicas that compute them."""
        self._poisons = poisons
        for place in range(len(self.stage.replicas)):
            self._warn(place)

    def _warn(self, place: int) -> None:
        """Tell the replica at a place what it cannot bear."""
        replica = self.stage.replicas[place]
        assert isinstance(replica, MortalReplica)
        if self._poisons:
            replica.bears = self._bears
            replica.on_poisoned = partial(self._poisoned, place)

    def _bears(self, number: int) -> bool:
        return not any(poison.is_poisoned(number) for poison in self._poisons)

    def _poisoned(self, place: int, number: int) -> None:
        after_ns = next(poison.restart_after_ns for poison in self._poisons if poison.is_poisoned(number))
        now_ns = self.clock.now_ns
        record = FaultRecord("poison", now_ns, None if after_ns is None else now_ns + after_ns, place)
        self.records.append(record)
        self._crash(record)

    def _crash(self, record: FaultRecord) -> None:
        stage, place = self.stage, record.replica
        assert place is not None
        record.void = stage.is_closed(place, CRASHED) or stage.is_vacant(place)
        if record.void:
            return
        stage.close(place, CRASHED)
        if record.until_ns is not None:
            self.clock.call_at(record.until_ns, partial(stage.open, place, CRASHED))
        record.interrupted, record.given_up = self.take_down(place)

    def take_down(self, place: int) -> tuple[int, int]:
        """End the replica at a place, which takes no requests; returns how many it had, and how many are given up."""
        stage, replica = self.stage, self.stage.replicas[place]
        assert isinstance(replica, MortalReplica)
        lost = replica.die()
        stage.replace(place, self.rebuild(place))
        self.on_replaced(place)
        self._warn(place)
        given_up = 0
        for request, output_tokens in lost:
            stage.ended(request, place)
            given_up += not self.resending.again(request, output_tokens, replica)
        return len(lost), given_up
