"""Hold the decisions of a live run against those of a simulation by the same clock.

The live run's step times are replayed: the simulated replica is told how long each step took, and decides everything
else anew, with policies and memory of its own. If both halves of the twin have one scheduler, all plans are equal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from simpy.core import StopSimulation

from simcore.build.cluster import SimulatedCluster
from simcore.build.replica import replica_parts
from simcore.build.simulation import Simulation
from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import to_ns
from simcore.cost.step_cost import StepCost
from simcore.recording.plan_log import PlannedStep
from simcore.recording.recorder import Recorder
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.step import StepResult
from simcore.service.clock import Clock
from simcore.service.executor import SimulatedExecutor
from simcore.service.replica import Replica
from simcore.service.replica_config import ReplicaConfig
from simcore.workload import has_contents


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """The first plan that differs, and in ``what``: it was ``live``, and is ``simulated``; None where there is none."""

    step: int
    what: str
    live: Any
    simulated: Any

    def __str__(self) -> str:
        return f"step {self.step}, {self.what}: live {self.live}, simulated {self.simulated}"


class _ReplayingExecutor(SimulatedExecutor):
    """Says that steps take as long as they were seen to."""

    def __init__(self, scheduler: Scheduler, cost: StepCost, durations_ns: Iterator[int], priced_ns: list[int]) -> None:
        super().__init__(scheduler, cost, fast_forward=False)
        self._durations_ns, self._priced_ns = durations_ns, priced_ns

    def execute(self, plan: BatchPlan, start_ns: int, within_ns: int) -> StepResult:
        """See ``Executor``; the run ends with the last step that was seen."""
        duration_ns = next(self._durations_ns, None)
        if duration_ns is None:
            raise StopSimulation(None)
        result = super().execute(plan, start_ns, within_ns)
        self._priced_ns.append(int(result.durations_ns[0]))
        result.durations_ns = [duration_ns]
        return result


class _ReplayingReplica(Replica):
    """Keeps the plans that it makes."""

    def __init__(
        self,
        clock: Clock,
        scheduler: Scheduler,
        cost: StepCost,
        recorder: Recorder,
        config: ReplicaConfig,
        durations_ns: Iterator[int],
    ) -> None:
        self.plans: list[PlannedStep] = []
        self.priced_ns: list[int] = []
        self._durations_ns = durations_ns
        super().__init__(clock, 0, scheduler, cost, recorder, config)

    def _make_executor(self, cost: StepCost) -> SimulatedExecutor:
        return _ReplayingExecutor(self.scheduler, cost, self._durations_ns, self.priced_ns)

    def _plan(self, start_ns: int) -> BatchPlan:
        plan = super()._plan(start_ns)
        step = PlannedStep.of(plan, start_ns)
        if not step.idle:
            self.plans.append(step)
        return plan


@dataclass(frozen=True, slots=True)
class Replayed:
    """All plans, and what the simulation would have taken each of the steps to last, in nanoseconds."""

    plans: list[PlannedStep]
    priced_ns: list[int]


def replayed(simulation: Simulation, durations_ns: Sequence[int]) -> Replayed:
    """What the scheduler of a scenario decides if its steps take so long, one after the other.

    Memory counts blocks where a simulation would, though the live engine's has numbered them.
    """
    scenario = simulation.scenario
    clock, recorder = Clock(), Recorder()
    shares = has_contents(simulation.workload)
    parts = replica_parts(scenario, simulation.spec, simulation.memory, clock, simulation.cost, shares)
    config = ReplicaConfig(
        to_ns(scenario.measurement.warmup_s), fast_forward=False, clients_give_up=scenario.workload.gives_up
    )
    replica = _ReplayingReplica(clock, parts.scheduler, simulation.cost, recorder, config, iter(durations_ns))
    simulation.run_on(clock, recorder, SimulatedCluster.of_one(replica, parts.offloading))
    return Replayed(replica.plans, replica.priced_ns)


def first_difference(live: Sequence[PlannedStep], simulated: Sequence[PlannedStep]) -> PlanDifference | None:
    """The first in which two sequences of plans differ; plans beyond the last of the live run are no difference.

    An interrupted run ends between two plans; what a replay decides thereafter nobody decided.
    """
    for number, (theirs, ours) in enumerate(zip(live, simulated, strict=False)):
        for what, one, other in zip(PlannedStep._fields, theirs, ours, strict=True):
            if one != other:
                return PlanDifference(number, what, one, other)
    if len(simulated) < len(live):
        return PlanDifference(len(simulated), "plan", live[len(simulated)], None)
    return None
