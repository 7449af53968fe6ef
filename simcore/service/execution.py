"""How long the steps of a plan take, and how many of them are executed in one piece."""

from itertools import accumulate

from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import to_s
from simcore.core.token_gaps import StepDurations
from simcore.cost.step_cost import StepCost
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.swapping import Swapping
from simcore.service.executor import SimulatedExecutor


class Execution:
    """Executes the plans of one replica.

    With ``fast_forward`` the steps of a plan that stands for more than one are executed in one jump, up to the next
    finish, shortage of memory or window crossing. With ``schedules_ahead`` the step after the one in progress is
    scheduled already, whoever comes meanwhile.
    """

    __slots__ = ("_cost", "_executor", "_fast_forward", "_scheduler", "_schedules_ahead", "sampled_rows")

    def __init__(
        self,
        scheduler: Scheduler,
        cost: StepCost,
        executor: SimulatedExecutor,
        fast_forward: bool,
        schedules_ahead: bool,
    ) -> None:
        self._scheduler = scheduler
        self._cost = cost
        self._executor = executor
        self._fast_forward = fast_forward
        self._schedules_ahead = schedules_ahead
        self.sampled_rows = 0
        """What the last step sampled that did more than decode."""

    def expected_s(self, plan: BatchPlan) -> float:
        """What a step would take whose every chunk completes a prompt."""
        sampled_rows = plan.decoding + len(plan.chunks)
        return to_s(self._cost.step_ns(plan, self._scheduler.pool, sampled_rows)) if sampled_rows else 0.0

    def outlasts_arrivals(self, plan: BatchPlan) -> bool:
        """Whether the step after that in which a request comes is sure to be like it, as it is scheduled already.

        With nobody in the queue, there is nobody that it could admit.
        """
        return self._schedules_ahead and not self._scheduler.waiting.size and plan.retry_ns is None

    def durations_ns(self, plan: BatchPlan, start_ns: int, within_ns: int) -> StepDurations:
        """How long the steps to run from ``start_ns`` on take: one, or as many as the plan stands for.

        The one in progress when ``within_ns`` have passed is the last, unless the next is scheduled already.
        """
        scheduler, pool = self._scheduler, self._scheduler.pool
        if plan.chunks or plan.stalled:
            self.sampled_rows = self.rows_sampled(plan)
            return [self._cost.step_ns(plan, pool, self.sampled_rows)]
        steps = 1
        if plan.stable_steps > 1 and self._fast_forward:
            steps = min(plan.stable_steps, self._executor.steps_to_next_finish(pool))
            for window in pool.windows:
                steps = min(steps, window.steps_to_crossing(pool.steps))
            steps = scheduler.steps_before_shortage(steps)
        more = 1 if steps > 1 and within_ns > 0 and self.outlasts_arrivals(plan) else 0
        return self._cost.decode_steps_ns(pool, steps, within_ns, more)

    @staticmethod
    def rows_sampled(plan: BatchPlan) -> int:
        """Tokens of a step that are sampled: of all who decode, and of those whose prompt it completes."""
        rows = plan.decoding
        for request, tokens, _ in plan.chunks:
            if tokens == request.tokens_to_compute:
                rows += 1
        return rows


def step_ends_ns(start_ns: int, durations_ns: StepDurations) -> list[int]:
    """When each of the steps ends that run one after the other from ``start_ns`` on."""
    return list(accumulate(map(int, durations_ns), initial=start_ns))[1:]


def after_swaps(swapping: Swapping, start_ns: int, durations_ns: StepDurations) -> StepDurations:
    """The step that moves blocks takes so much longer, and is one."""
    transfers_ns = swapping.space.busy_until_ns - start_ns
    return [int(durations_ns[0]) + transfers_ns] if transfers_ns > 0 else durations_ns
