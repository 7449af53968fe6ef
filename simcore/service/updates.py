"""Replicas that are replaced by others while the service goes on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from simcore.core.request import Request
from simcore.service.clock import Clock
from simcore.service.replica import Replica
from simcore.service.stage import Stage

UPDATING = "updating"


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """The replicas at some ``places`` become like the one at the place ``like``, from a time on.

    A new one takes ``load_ns`` to start. ``most_out`` are out at once; with None new ones start beside the old ones.
    """

    name: str
    places: range
    like: int
    at_ns: int
    load_ns: int
    most_out: int | None


@dataclass(slots=True)
class UpdateRecord:
    """What came of an update: when each new replica took requests, when the last old one was drained."""

    plan: UpdatePlan
    ready_ns: list[int] = field(default_factory=list)
    drained_ns: list[int] = field(default_factory=list)
    extra_ns: int = 0
    """Time of replicas that stood beside those that they replace, added up."""


@dataclass(slots=True)
class Updates:
    """Carries out updates of the replicas of a stage; no request is interrupted by one."""

    clock: Clock
    stage: Stage
    rebuild: Callable[[int, int], Replica]
    """Makes a replica to stand at a place, like the one at another."""
    on_replaced: Callable[[int], None] = lambda place: None
    records: list[UpdateRecord] = field(default_factory=list)
    _draining: dict[int, tuple[Replica, Callable[[], None]]] = field(default_factory=dict)

    def schedule(self, plans: Sequence[UpdatePlan]) -> None:
        """Have these updates happen."""
        self.stage.followers.append(self)
        for plan in plans:
            record = UpdateRecord(plan)
            self.records.append(record)
            if plan.most_out is None:
                self.clock.call_at(plan.at_ns + plan.load_ns, partial(self._switch, record))
            else:
                self.clock.call_at(plan.at_ns, partial(self._roll, record, list(plan.places)))

    def sent(self, request: Request, place: int) -> None:
        """See ``StageFollower``."""

    def ended(self, request: Request, place: int) -> None:
        """The last request of a replica that drains lets it go."""
        if place in self._draining and not self._draining[place][0].requests.by_number:
            _, then = self._draining.pop(place)
            then()

    def _drain(self, place: int, replica: Replica, then: Callable[[], None]) -> None:
        """Do something when a replica, which gets no more requests, has none left."""
        if replica.requests.by_number:
            self._draining[place] = replica, then
        else:
            then()

    def _roll(self, record: UpdateRecord, places: list[int]) -> None:
        assert record.plan.most_out is not None
        for place in places[: record.plan.most_out]:
            self._take_out(record, place, places)
        del places[: record.plan.most_out]

    def _take_out(self, record: UpdateRecord, place: int, others: list[int]) -> None:
        self.stage.close(place, UPDATING)
        self._drain(place, self.stage.replicas[place], partial(self._load, record, place, others))

    def _load(self, record: UpdateRecord, place: int, others: list[int]) -> None:
        record.drained_ns.append(self.clock.now_ns)
        self.clock.call_at(self.clock.now_ns + record.plan.load_ns, partial(self._renew, record, place, others))

    def _renew(self, record: UpdateRecord, place: int, others: list[int]) -> None:
        self._replace(record, place)
        self.stage.open(place, UPDATING)
        if others:
            self._take_out(record, others.pop(0), others)

    def _switch(self, record: UpdateRecord) -> None:
        """All new replicas take over at once."""
        for place in record.plan.places:
            old = self.stage.replicas[place]
            self._replace(record, place)
            self._drain(place, old, partial(self._note_drained, record))

    def _note_drained(self, record: UpdateRecord) -> None:
        record.drained_ns.append(self.clock.now_ns)
        record.extra_ns += self.clock.now_ns - record.plan.at_ns

    def _replace(self, record: UpdateRecord, place: int) -> None:
        self.stage.replace(place, self.rebuild(place, record.plan.like), record.plan.like)
        self.on_replaced(place)
        record.ready_ns.append(self.clock.now_ns)
