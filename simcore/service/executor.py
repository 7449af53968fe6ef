"""The simulated executor: prices plans, and knows how long each output will be."""

from operator import attrgetter

from simcore.core.batch_plan import BatchPlan
from simcore.core.request import Request
from simcore.core.token_gaps import StepDurations
from simcore.cost.step_cost import StepCost
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.step import StepResult
from simcore.scheduling.swapping import Swapping
from simcore.service.output_ends import OutputEnds

_BY_ADMISSION = attrgetter("admission")


class SimulatedExecutor:
    """Tells how long the steps of a plan take, by their price, and who ends with them, by true output lengths.

    It lets no time pass: whoever asks waits on the virtual clock. With ``fast_forward`` the steps of a plan that stands
    for more than one are executed in one jump, up to the next finish, shortage of memory or window crossing. With
    ``schedules_ahead`` the step after the one in progress is scheduled already, whoever comes meanwhile.
    """

    __slots__ = ("_cost", "_fast_forward", "_scheduler", "_schedules_ahead", "ends")

    def __init__(
        self, scheduler: Scheduler, cost: StepCost, fast_forward: bool = True, schedules_ahead: bool = False
    ) -> None:
        self._scheduler = scheduler
        self._cost = cost
        self._fast_forward = fast_forward
        self._schedules_ahead = schedules_ahead
        self.ends = OutputEnds()

    @property
    def ready_ns(self) -> int:
        """When a step may begin at the earliest."""
        return 0

    def outlasts_arrivals(self, plan: BatchPlan) -> bool:
        """Whether the step after that in which a request comes is sure to be like it, as it is scheduled already.

        With nobody in the queue, there is nobody that it could admit.
        """
        return self._schedules_ahead and not self._scheduler.state.waiting.size and plan.retry_ns is None

    def execute(self, plan: BatchPlan, start_ns: int, within_ns: int) -> StepResult:
        """See ``Executor``; where the next step is scheduled already, one more may follow."""
        state, ends = self._scheduler.state, self.ends
        ended: list[Request] = []
        sampled_rows = 0
        if plan.chunks or plan.stalled:
            sampled_rows = plan.decoding
            for request, tokens, _ in plan.chunks:
                if tokens == request.tokens_to_compute:
                    sampled_rows += 1
                    if ends.ends_next(request):
                        ended.append(request)
            durations_ns = self._mixed_ns(plan, start_ns, sampled_rows)
        else:
            durations_ns = self._decodes_ns(plan, start_ns, within_ns)
        if state.swapping is not None:
            durations_ns = _after_swaps(state.swapping, start_ns, durations_ns)
        if plan.decoding:
            ended += ends.take(state.pool, len(durations_ns), plan.stalled)
            if len(ended) > 1:
                ended.sort(key=_BY_ADMISSION)
        return StepResult(durations_ns, ended, sampled_rows)

    def resume(self, result: StepResult) -> None:
        """Take note that only the first steps of a result are executed, with which nobody ends."""
        for request in result.ended:
            self.ends.follow(request)

    def _mixed_ns(self, plan: BatchPlan, start_ns: int, sampled_rows: int) -> StepDurations:
        """How long a step takes that does more than decode."""
        return [self._cost.step_ns(plan, self._scheduler.state.pool, sampled_rows)]

    def _decodes_ns(self, plan: BatchPlan, start_ns: int, within_ns: int) -> StepDurations:
        """How long the steps take that only decode: one, or as many as the plan stands for."""
        scheduler = self._scheduler
        pool = scheduler.state.pool
        steps = 1
        if plan.stable_steps > 1 and self._fast_forward:
            steps = min(plan.stable_steps, self.ends.steps_to_next(pool))
            for window in pool.windows:
                steps = min(steps, window.steps_to_crossing(pool.steps))
            if steps > 1:
                steps = scheduler.steps_before_shortage(steps)
        more = int(steps > 1 and within_ns > 0 and self.outlasts_arrivals(plan))
        return self._cost.decode_steps_ns(pool, steps, within_ns, more)


def _after_swaps(swapping: Swapping, start_ns: int, durations_ns: StepDurations) -> StepDurations:
    """The step that moves blocks takes so much longer, and is one."""
    transfers_ns = swapping.space.busy_until_ns - start_ns
    return [int(durations_ns[0]) + transfers_ns] if transfers_ns > 0 else durations_ns
