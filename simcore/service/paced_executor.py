"""Executors of replicas whose steps take longer than the model alone: by adapters, or since they are slow at times."""

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

STEADY = Pace(())


class PacedExecutor(SimulatedExecutor):
    """Prices plans as any other; adapters add to each step, and it takes as many times longer as the pace says then.

    An adapter that is not in a slot is loaded before the first step of a plan.
    """

    __slots__ = ("_adapters", "_pace")

    def __init__(
        self, scheduler: Scheduler, cost: StepCost, config: ReplicaConfig, schedules_ahead: bool, pace: Pace
    ) -> None:
        super().__init__(scheduler, cost, config.fast_forward, schedules_ahead)
        self._adapters = config.adapters
        self._pace = pace

    def _mixed_ns(self, plan: BatchPlan, start_ns: int, sampled_rows: int) -> StepDurations:
        durations_ns = super()._mixed_ns(plan, start_ns, sampled_rows)
        return self._longer(durations_ns, start_ns, plan.decoding + plan.prefill_tokens)

    def _decodes_ns(self, plan: BatchPlan, start_ns: int, within_ns: int) -> StepDurations:
        _, until_ns = self._pace.at(start_ns)
        durations_ns = super()._decodes_ns(plan, start_ns, FOREVER if within_ns else 0)
        durations_ns = self._longer(durations_ns, start_ns, plan.decoding)
        ends_ns = list(accumulate(map(int, durations_ns)))
        steps = bisect_left(ends_ns, until_ns - start_ns) + 1
        if within_ns < FOREVER:
            more = int(len(ends_ns) > 1 and within_ns > 0 and self.outlasts_arrivals(plan))
            steps = min(steps, bisect_left(ends_ns, within_ns) + 1 + more)
        return durations_ns[:steps]

    def _longer(self, durations_ns: StepDurations, start_ns: int, tokens: int) -> StepDurations:
        """Steps of so many tokens each, the first of which begins then, with all that makes them longer."""
        state, (factor, _) = self._scheduler.state, self._pace.at(start_ns)
        added_ns = loading_ns = 0
        if self._adapters is not None and state.adapters is not None:
            used, loaded = state.adapters.use(state.running)
            added_ns, loading_ns = self._adapters.step_ns(used, tokens), loaded * self._adapters.load_ns
        longer_ns = [round((int(each_ns) + added_ns) * factor) for each_ns in durations_ns]
        longer_ns[0] += loading_ns
        return longer_ns


def simulated_executor(scheduler: Scheduler, cost: StepCost, config: ReplicaConfig, index: int) -> SimulatedExecutor:
    """The executor of the replica of this number."""
    unseen = not (config.clients_give_up or sees_entries(scheduler)) and scheduler.state.loading is None
    ahead = config.async_scheduling and unseen
    pace = None if config.paces is None else config.paces.get(index)
    if pace is None and config.adapters is None:
        return SimulatedExecutor(scheduler, cost, config.fast_forward, ahead)
    return PacedExecutor(scheduler, cost, config, ahead, pace or STEADY)
