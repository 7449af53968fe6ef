"""The replica of a simulation with a model that computes its steps."""

from live.engine.executor import LiveExecutor, Runner
from live.engine.wall_clock import WallClock
from simcore.core.batch_plan import BatchPlan
from simcore.core.request import Request
from simcore.cost.step_cost import StepCost
from simcore.recording.plan_log import PlannedStep
from simcore.recording.recorder import Recorder
from simcore.scheduling.scheduler import Scheduler
from simcore.service.replica import Replica
from simcore.service.replica_config import ReplicaConfig


class LiveReplica(Replica):
    """Runs the step contract on the wall clock; ``plans`` are all that its scheduler decided, if they are kept."""

    def __init__(
        self,
        clock: WallClock,
        scheduler: Scheduler,
        cost: StepCost,
        recorder: Recorder,
        config: ReplicaConfig,
        runner: Runner,
        vocabulary: int,
        keep_plans: bool = False,
    ) -> None:
        self.live = LiveExecutor(scheduler, runner, clock, vocabulary)
        self.plans: list[PlannedStep] | None = [] if keep_plans else None
        super().__init__(clock, 0, scheduler, cost, recorder, config)

    def _make_executor(self, cost: StepCost) -> LiveExecutor:
        return self.live

    def _plan(self, start_ns: int) -> BatchPlan:
        plan = super()._plan(start_ns)
        if self.plans is not None:
            step = PlannedStep.of(plan, start_ns)
            if not step.idle:
                self.plans.append(step)
        return plan

    def cancel(self, request: Request, reason: str) -> None:
        """Abort a request that may be over already."""
        if request.number in self.requests.by_number:
            self.give_up(request, reason)
