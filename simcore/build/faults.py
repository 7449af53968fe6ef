"""The faults that a scenario states."""

from collections.abc import Sequence

from simcore.build.cluster import SimulatedCluster
from simcore.build.pool import PreparedPool
from simcore.core.clock import to_ns
from simcore.core.errors import InputError
from simcore.recording.recorder import Recorder
from simcore.scenario import Scenario
from simcore.scenario.sections import Crash, Retries
from simcore.service.clock import Clock
from simcore.service.crashes import Crashes, CrashPlan, RetryConfig
from simcore.service.stage import Stage


def check_faults(scenario: Scenario, pools: Sequence[PreparedPool]) -> None:
    """Raise ``InputError`` for faults of replicas that are not there, or that cannot be taken out of a run."""
    if not scenario.faults:
        if scenario.retries is not None:
            raise InputError("retries.attempts", scenario.retries.attempts, "no retries without faults")
        return
    replicas = sum(pool.replicas for pool in pools)
    for place, fault in enumerate(scenario.faults):
        if fault.replica >= replicas:
            expected = f"at most {replicas - 1}, the last of {replicas} replicas"
            raise InputError(f"faults.{place}.replica", fault.replica, expected)
    for pool in pools:
        reasons = {
            f"pool {pool.name} hands requests over": pool.role != "mixed",
            "pipeline stages have batches in flight": pool.pipeline is not None,
            "memory.tiers outlive a replica": bool(pool.scenario.memory.tiers),
            "swap space outlives a replica": pool.scenario.scheduler.preemption.mode == "swap",
        }
        for reason, holds in reasons.items():
            if holds:
                raise InputError("faults", [fault.name for fault in scenario.faults], f"none, since {reason}")


def build_crashes(
    scenario: Scenario, cluster: SimulatedCluster, stage: Stage, clock: Clock, recorder: Recorder
) -> Crashes | None:
    """What lets replicas crash, None without any such fault; those after the end of the run are left out."""
    if not scenario.faults:
        return None
    section, end_s = scenario.retries or Retries(), scenario.measurement.end_s
    retries = RetryConfig(section.attempts, to_ns(section.delay_s))
    crashes = Crashes(clock, stage, recorder, retries, cluster.rebuild)
    crashes.schedule([_plan(fault) for fault in scenario.faults if end_s is None or fault.at_s < end_s])
    return crashes


def _plan(fault: Crash) -> CrashPlan:
    restart_ns = None if fault.restart_after_s is None else to_ns(fault.at_s + fault.restart_after_s)
    return CrashPlan(fault.replica, to_ns(fault.at_s), restart_ns)
