"""Executors of replicas, some of which are slow at times."""

from bisect import bisect_left
from itertools import accumulate

from policies.horizon import FOREVER
from simcore.core.batch_plan import BatchPlan
from simcore.core.token_gaps import StepDurations
from simcore.cost.step_cost import StepCost
from simcore.scheduling.scheduler import Scheduler
from simcore.service.executor import SimulatedExecutor
from simcore.service.pace import Pace
from simcore.service.replica_config import ReplicaConfig, sees_entries


class PacedExecutor(SimulatedExecutor):
    """Prices plans as any other; a step takes as many times longer as the pace says when it begins."""

    __slots__ = ("_pace",)

    def __init__(
        self, scheduler: Scheduler, cost: StepCost, fast_forward: bool, schedules_ahead: bool, pace: Pace
    ) -> None:
        super().__init__(scheduler, cost, fast_forward, schedules_ahead)
        self._pace = pace

    def _mixed_ns(self, plan: BatchPlan, start_ns: int, sampled_rows: int) -> StepDurations:
        factor, _ = self._pace.at(start_ns)
        return _slowed(super()._mixed_ns(plan, start_ns, sampled_rows), factor)

    def _decodes_ns(self, plan: BatchPlan, start_ns: int, within_ns: int) -> StepDurations:
        factor, until_ns = self._pace.at(start_ns)
        if factor == 1.0 and until_ns == FOREVER:
            return super()._decodes_ns(plan, start_ns, within_ns)
        durations_ns = _slowed(super()._decodes_ns(plan, start_ns, FOREVER if within_ns else 0), factor)
        ends_ns = list(accumulate(map(int, durations_ns)))
        steps = bisect_left(ends_ns, until_ns - start_ns) + 1
        if within_ns < FOREVER:
            more = int(len(ends_ns) > 1 and within_ns > 0 and self.outlasts_arrivals(plan))
            steps = min(steps, bisect_left(ends_ns, within_ns) + 1 + more)
        return durations_ns[:steps]


def simulated_executor(scheduler: Scheduler, cost: StepCost, config: ReplicaConfig, index: int) -> SimulatedExecutor:
    """The executor of the replica of this number."""
    unseen = not (config.clients_give_up or sees_entries(scheduler)) and scheduler.state.loading is None
    ahead = config.async_scheduling and unseen
    pace = None if config.paces is None else config.paces.get(index)
    if pace is None:
        return SimulatedExecutor(scheduler, cost, config.fast_forward, ahead)
    return PacedExecutor(scheduler, cost, config.fast_forward, ahead, pace)


def _slowed(durations_ns: StepDurations, factor: float) -> StepDurations:
    return durations_ns if factor == 1.0 else [round(int(each_ns) * factor) for each_ns in durations_ns]
