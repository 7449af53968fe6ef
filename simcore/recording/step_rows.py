"""Rows of like steps, as a replica takes them."""

from simcore.core.batch_plan import BatchPlan
from simcore.recording.recorder import Recorder
from simcore.scheduling.scheduler import Scheduler


class StepRows:
    """Hands the steps of one replica to the recorder, decode steps of the same batch right after each other in a row.

    How many steps a jump takes depends on arrivals; whether the batch is the same does not.
    """

    __slots__ = ("_index", "_preempted", "_recorder", "_row", "_same_batch")

    def __init__(self, index: int, recorder: Recorder) -> None:
        self._index = index
        self._recorder = recorder
        self._row: list[int] = []
        self._same_batch = False
        self._preempted = 0

    def idles(self, plan: BatchPlan) -> None:
        """Nobody runs by a plan: whom it preempted counts with the step that comes next."""
        self._preempted += len(plan.preempted)

    def begin(self, plan: BatchPlan, start_ns: int, scheduler: Scheduler) -> None:
        """Begin a row with the steps of a plan, or go on with the last."""
        plain = not (plan.chunks or plan.stalled or plan.preempted or plan.dropped or plan.swapped_in)
        row = self._row
        if row:
            if plain and not self._preempted and self._same_batch and row[2] == start_ns:
                return
            self._recorder.steps_run(row)
        self._same_batch = plain
        memory = scheduler.memory
        used_blocks = memory.total_blocks - memory.free_blocks
        self._row = [
            self._index,
            start_ns,
            start_ns,
            0,
            plan.prefill_tokens,
            plan.decoding,
            len(scheduler.running),
            scheduler.waiting_requests,
            used_blocks,
            used_blocks,
            scheduler.pool.context_tokens,
            self._preempted + len(plan.preempted),
        ]
        self._preempted = 0

    def passed(self, steps: int, now_ns: int) -> None:
        """So many steps of the row have ended."""
        row = self._row
        row[2] = now_ns
        row[3] += steps

    def uses(self, blocks: int) -> None:
        """So many blocks are in use as the row ends, so far."""
        self._row[9] = blocks

    def batch_changes(self) -> None:
        """Some request leaves: what comes is another row."""
        self._same_batch = False

    def close(self) -> None:
        """Hand on the last row; of a step in progress it counts whom it preempted."""
        if self._row and (self._row[3] or self._row[11]):
            self._recorder.steps_run(self._row)
