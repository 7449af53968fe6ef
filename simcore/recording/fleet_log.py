"""What the replicas of a pool went through that come and go, and who decided."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from simcore.core.clock import to_ns, to_s

STARTING, WAKING, WARMING, SERVING, DRAINING, ASLEEP = "starting", "waking", "warming", "serving", "draining", "asleep"
PHASES = (STARTING, WAKING, WARMING, SERVING, DRAINING, ASLEEP)
"""A replica starts, cold or from sleep, and serves; or it starts in order to sleep. It drains before it stops."""

AT_FULL_PRICE = tuple(phase for phase in PHASES if phase != ASLEEP)


@dataclass(slots=True)
class PhaseRow:
    """A replica in a phase; ``end_ns`` is None where the run ended first."""

    replica: int
    phase: str
    start_ns: int
    end_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a scaling policy wanted, how many there were or were on their way, and how many there should be now."""

    at_ns: int
    wanted: float
    present: int
    target: int


@dataclass(slots=True)
class ReclaimRow:
    """An instance that was given notice; ``void`` where there was none at that time."""

    replica: int
    at_ns: int
    void: bool = False
    interrupted: int = 0
    given_up: int = 0


@dataclass(slots=True)
class FleetLog:
    """All phases in the order in which they began, decisions and notices."""

    phases: list[PhaseRow] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    reclaims: list[ReclaimRow] = field(default_factory=list)
    _latest: dict[int, PhaseRow] = field(default_factory=dict)

    def enter(self, replica: int, phase: str, now_ns: int) -> None:
        """A replica goes over to a phase."""
        self.leave(replica, now_ns)
        row = self._latest[replica] = PhaseRow(replica, phase, now_ns)
        self.phases.append(row)

    def leave(self, replica: int, now_ns: int) -> None:
        """A replica is gone, and costs nothing from now on."""
        row = self._latest.pop(replica, None)
        if row is not None:
            row.end_ns = now_ns

    def phase_of(self, replica: int) -> str | None:
        """The phase that a replica is in; None where there is none."""
        row = self._latest.get(replica)
        return None if row is None else row.phase

    def in_phase(self, phases: Iterable[str]) -> list[int]:
        """The replicas that are in one of some phases, those first that entered it first."""
        wanted = frozenset(phases)
        return [replica for replica, row in self._latest.items() if row.phase in wanted]

    def seconds_in(self, phases: Iterable[str], start_s: float, end_s: float) -> float:
        """Replica-seconds in some phases between two times; who is there still stays to the end.

        Sums are of whole nanoseconds, so that they do not depend on an order.
        """
        wanted, first_ns, last_ns = frozenset(phases), to_ns(start_s), to_ns(end_s)
        spans = (
            (max(row.start_ns, first_ns), last_ns if row.end_ns is None else min(row.end_ns, last_ns))
            for row in self.phases
            if row.phase in wanted
        )
        return to_s(sum(max(until_ns - from_ns, 0) for from_ns, until_ns in spans))
