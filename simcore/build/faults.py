"""The faults that a scenario states."""

from collections.abc import Iterator, Sequence
from functools import partial

from policies.chance import uniform
from simcore.build.cluster import SimulatedCluster
from simcore.build.fault_times import DEADLY, all_strikes, loses_requests
from simcore.build.pool import PreparedPool
from simcore.core.clock import to_ns
from simcore.core.errors import InputError
from simcore.scenario import Scenario
from simcore.scenario.sections.faults import Crash, OnReplica, Partition, Poison, SlowGpu, SlowLink, TransferLoss
from simcore.service import crashes
from simcore.service.clock import Clock
from simcore.service.crashes import Crashes
from simcore.service.fault_record import FaultRecord
from simcore.service.faults import Faults
from simcore.service.handovers import Handovers
from simcore.service.pace import Pace
from simcore.service.partitions import Partitions
from simcore.service.resending import Resending
from simcore.service.stage import Stage

_CHANCE_OF_POISON = 7


def check_faults(scenario: Scenario, pools: Sequence[PreparedPool]) -> None:
    """Raise ``InputError`` for faults of replicas that are not there, or that cannot be taken out of a run."""
    if not scenario.faults:
        retries = scenario.retries
        if retries is not None and not (scenario.cluster.takes_back or retries.of_rejected or retries.of_timeouts):
            raise InputError("retries.attempts", retries.attempts, "no retries without faults")
        return
    replicas = sum(pool.replicas for pool in pools)
    for place, fault in enumerate(scenario.faults):
        if isinstance(fault, OnReplica) and fault.replica is not None and fault.replica >= replicas:
            expected = f"at most {replicas - 1}, the last of {replicas} replicas"
            raise InputError(f"faults.{place}.replica", fault.replica, expected)
        for pool in pools:
            hands_over, stages = pool.role != "mixed", pool.pipeline is not None
            deadly, loses = isinstance(fault, DEADLY), loses_requests([fault])
            reasons = {
                f"pool {pool.name} hands requests over": hands_over and loses,
                "no pool hands requests over": not hands_over and isinstance(fault, SlowLink | TransferLoss),
                "pipeline stages have batches in flight": stages and (loses or isinstance(fault, SlowGpu)),
                "memory.tiers outlive a replica": deadly and bool(pool.scenario.memory.tiers),
                "swap space outlives a replica": deadly and pool.scenario.scheduler.preemption.mode == "swap",
            }
            for reason, holds in reasons.items():
                if holds:
                    raise InputError(f"faults.{place}.name", fault.name, f"none, since {reason}")


def build_faults(
    scenario: Scenario,
    cluster: SimulatedCluster,
    stage: Stage,
    handovers: Handovers | None,
    clock: Clock,
    resending: Resending | None,
) -> Faults | None:
    """What makes things go wrong, None where nothing does; faults after the end of the run are left out."""
    if not scenario.faults and not scenario.cluster.takes_back:
        return None
    assert resending is not None
    replicas = len(cluster.replicas)
    fatal = Crashes(clock, stage, resending, cluster.rebuild)
    for crash, at_ns, replica in all_strikes(scenario, Crash, replicas):
        restart_ns = None if crash.restart_after_s is None else at_ns + to_ns(crash.restart_after_s)
        fatal.schedule(FaultRecord(crash.name, at_ns, restart_ns, replica))
    if poisons := list(_poisons(scenario)):
        fatal.poison(poisons)
    partitions = Partitions(clock, stage, resending)
    for cut, at_ns, replica in all_strikes(scenario, Partition, replicas):
        partitions.schedule(FaultRecord(cut.name, at_ns, at_ns + to_ns(cut.for_s), replica))
    others = [*_slow_gpus(scenario, replicas)]
    if handovers is not None:
        others += [*_slow_links(scenario, handovers, replicas, clock), *_losses(scenario, handovers, clock)]
    return Faults(fatal, partitions, others)


def _poisons(scenario: Scenario) -> Iterator[crashes.Poison]:
    for place, fault in enumerate(scenario.faults or ()):
        if isinstance(fault, Poison):
            numbers, after_s = frozenset(fault.requests), fault.restart_after_s
            is_poisoned = partial(_is_poisoned, numbers, fault.share, scenario.seed, _CHANCE_OF_POISON + place)
            yield crashes.Poison(is_poisoned, None if after_s is None else to_ns(after_s))


def _is_poisoned(numbers: frozenset[int], share: float, seed: int, stream: int, number: int) -> bool:
    return number in numbers or (share > 0 and uniform(seed, number, stream) < share)


def _slow_gpus(scenario: Scenario, replicas: int) -> Iterator[FaultRecord]:
    for fault, at_ns, replica in all_strikes(scenario, SlowGpu, replicas):
        yield FaultRecord(fault.name, at_ns, at_ns + to_ns(fault.for_s), replica)


def _slow_links(scenario: Scenario, handovers: Handovers, replicas: int, clock: Clock) -> Iterator[FaultRecord]:
    windows: dict[int, list[tuple[int, int, float]]] = {}
    for fault, at_ns, replica in all_strikes(scenario, SlowLink, replicas):
        if replica is not None:
            windows.setdefault(replica, []).append((at_ns, at_ns + to_ns(fault.for_s), fault.share))
            yield FaultRecord(fault.name, at_ns, at_ns + to_ns(fault.for_s), replica)
    for replica, own in windows.items():
        for at_ns, factor in Pace(own).changes:
            clock.call_at(at_ns, partial(handovers.slow_links, replica, factor))


def _losses(scenario: Scenario, handovers: Handovers, clock: Clock) -> Iterator[FaultRecord]:
    windows: list[tuple[int, int, float]] = []
    for fault, at_ns, _ in all_strikes(scenario, TransferLoss, 0):
        windows.append((at_ns, at_ns + to_ns(fault.for_s), 1 - fault.share))
        yield FaultRecord(fault.name, at_ns, at_ns + to_ns(fault.for_s))
    for at_ns, kept_share in Pace(windows).changes:
        clock.call_at(at_ns, partial(handovers.lose, 1 - kept_share))
