"""All that is noted of the steps of one replica."""

from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.cost.price_shares import RangeCounter
from simcore.cost.step_cost import StepCost
from simcore.cost.work import WorkCounter
from simcore.recording.gap_tracker import GapTracker
from simcore.recording.recorder import Recorder
from simcore.recording.step_rows import StepRows
from simcore.scheduling.step import Committed, StepResult


class StepLog:
    """Rows of steps, the work done in them, how far they were measured, and the gaps between tokens they made.

    Of a plan, ``rows`` begin before it is executed; its steps ``ran`` before they are committed, and are ``committed``.
    Gaps that end by ``measure_since_ns`` are left out.
    """

    __slots__ = ("_stay_behind", "gaps", "ranges", "rows", "work")

    def __init__(self, index: int, recorder: Recorder, cost: StepCost, measure_since_ns: int) -> None:
        self.rows = StepRows(index, recorder)
        self.work = WorkCounter(cost.window_tokens, cost.split)
        self.ranges = RangeCounter(cost)
        self.gaps = GapTracker(measure_since_ns)
        self._stay_behind = False

    def planned(self, plan: BatchPlan) -> None:
        """Note who loses or gets back their place in the batch by a plan."""
        for request in plan.preempted:
            self.gaps.preempted(request)
        for request in plan.swapped_in:
            if request.pool is not None:
                self.gaps.returned(request)

    def ran(self, plan: BatchPlan, pool: DecodePool, result: StepResult, start_ns: int, now_ns: int) -> None:
        """Note that steps of a plan, which began at ``start_ns``, end now."""
        durations_ns = result.durations_ns
        if plan.chunks or plan.stalled:
            self.work.count_step(plan, pool, result.sampled_rows)
            self.ranges.count_step(plan, pool, result.sampled_rows, durations_ns[0])
        else:
            self.work.count_decodes(pool, len(durations_ns))
            self.ranges.count_decodes(pool, durations_ns)
        self.rows.passed(durations_ns, now_ns)
        self._stay_behind = pool.size > 0 and not plan.decoding
        if plan.decoding:
            self.gaps.decoded(plan, start_ns, durations_ns)

    def committed(self, plan: BatchPlan, done: Committed, now_ns: int) -> None:
        """Note what came of the steps that just ended."""
        if plan.decoding:
            self.rows.uses(done.used_blocks)
        for request in done.prefilled:
            self.gaps.prefilled(request, now_ns)
        if self._stay_behind:
            for request in done.decoding:
                self.gaps.joined(request, now_ns)
        else:
            self.gaps.last_token_ns = now_ns

    def left(self, request: Request) -> None:
        """Note that a request is gone that is not complete."""
        self.rows.batch_changes()
        self.gaps.dropped(request)
