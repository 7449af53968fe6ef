"""When faults strike, and where: as a scenario states it, or by chance of its seed."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import TypeVar

from simcore.core.clock import to_ns
from simcore.scenario import Scenario
from simcore.scenario.sections.faults import Crash, FaultSection, OnReplica, Partition, Poison, SlowGpu, Timed
from simcore.service.pace import Pace

Kind = TypeVar("Kind", bound=Timed)
DEADLY = (Crash, Poison)
"""Faults that end a replica, and all that it holds."""


def loses_requests(faults: Sequence[FaultSection] | None) -> bool:
    """Whether some of these faults have replicas lose their requests."""
    return any(isinstance(fault, (*DEADLY, Partition)) for fault in faults or ())


def can_withdraw(scenario: Scenario) -> bool:
    """Whether requests can be taken from a replica before they have ended."""
    hedges = scenario.gateway is not None and scenario.gateway.hedging is not None
    asks_again = scenario.retries is not None and scenario.retries.of_timeouts
    return hedges or asks_again or loses_requests(scenario.faults) or scenario.cluster.takes_back


def paces(scenario: Scenario, replicas: int) -> dict[int, Pace]:
    """How slow replicas are over time, those that are at all."""
    windows: dict[int, list[tuple[int, int, float]]] = {}
    for fault, start_ns, replica in all_strikes(scenario, SlowGpu, replicas):
        if replica is not None:
            windows.setdefault(replica, []).append((start_ns, start_ns + to_ns(fault.for_s), fault.factor))
    return {replica: Pace(own) for replica, own in windows.items()}


def all_strikes(scenario: Scenario, kind: type[Kind], replicas: int) -> Iterator[tuple[Kind, int, int | None]]:
    """Each time that a fault of a kind strikes before the end of the run, and where."""
    end_s = scenario.measurement.end_s
    for place, fault in enumerate(scenario.faults or ()):
        if isinstance(fault, kind):
            for at_ns, replica in _strikes(fault, place, scenario.seed, replicas):
                if end_s is None or at_ns < to_ns(end_s):
                    yield fault, at_ns, replica


def _strikes(fault: Timed, place: int, seed: int, replicas: int) -> Iterator[tuple[int, int | None]]:
    """The times of a fault, in nanoseconds, each with the replica that it strikes; None if it strikes no single one.

    ``place`` is that of the fault in the scenario's list: each has chance of its own.
    """
    stated = fault.replica if isinstance(fault, OnReplica) else None
    if fault.at_s is not None:
        yield to_ns(fault.at_s), stated
        return
    assert fault.every_s is not None
    assert fault.until_s is not None
    random = Random(f"faults {seed} {place}")
    at_s = random.expovariate(1 / fault.every_s)
    while at_s < fault.until_s:
        struck = random.randrange(replicas) if isinstance(fault, OnReplica) and stated is None else stated
        yield to_ns(at_s), struck
        at_s += random.expovariate(1 / fault.every_s)
