"""Replicas that the router cannot reach for a while."""

from dataclasses import dataclass, field
from functools import partial

from simcore.service.clock import Clock
from simcore.service.fault_record import FaultRecord
from simcore.service.mortal_replica import MortalReplica
from simcore.service.resending import Resending
from simcore.service.stage import Stage

UNREACHABLE = "unreachable"


@dataclass(slots=True)
class Partitions:
    """Cuts replicas of a stage off, and has their open requests sent to others.

    A connection that breaks is noticed on both sides: the replica aborts its requests, and keeps its caches. What the
    step in progress still computes for them reaches nobody. Back in reach it takes requests again.
    """

    clock: Clock
    stage: Stage
    resending: Resending
    records: list[FaultRecord] = field(default_factory=list)
    _cuts: dict[int, int] = field(default_factory=dict)

    def schedule(self, record: FaultRecord) -> None:
        """Have a replica be out of reach."""
        self.records.append(record)
        self.clock.call_at(record.at_ns, partial(self._cut, record))

    def _cut(self, record: FaultRecord) -> None:
        stage, place = self.stage, record.replica
        assert place is not None
        assert record.until_ns is not None
        record.void = not stage.is_up(place)
        self._cuts[place] = self._cuts.get(place, 0) + 1
        stage.close(place, UNREACHABLE)
        self.clock.call_at(record.until_ns, partial(self._mend, place))
        replica = stage.replicas[place]
        assert isinstance(replica, MortalReplica)
        lost = replica.disconnect()
        record.interrupted = len(lost)
        for request, output_tokens in lost:
            stage.ended(request, place)
            record.given_up += not self.resending.again(request, output_tokens, replica)

    def _mend(self, place: int) -> None:
        self._cuts[place] -= 1
        if not self._cuts[place]:
            self.stage.open(place, UNREACHABLE)
