"""Rows of like steps, as a replica takes them."""

from simcore.core.batch_plan import BatchPlan
from simcore.core.token_gaps import StepDurations
from simcore.recording.recorder import STEP_FIELDS, Recorder
from simcore.scheduling.state import SchedulerState

_END, _FIRST_STEP, _LAST_STEP, _STEPS, _BLOCKS_AT_END, _PREEMPTED = map(
    STEP_FIELDS.index,
    ("end_ns", "first_step_ns", "last_step_ns", "steps", "used_blocks_at_end", "preempted_requests"),
)


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

    def begin(self, plan: BatchPlan, start_ns: int, state: SchedulerState) -> None:
        """Begin a row with the steps of a plan, or go on with the last."""
        plain = not (plan.chunks or plan.stalled or plan.preempted or plan.dropped or plan.swapped_in)
        row = self._row
        if row:
            if plain and not self._preempted and self._same_batch and row[_END] == start_ns:
                return
            self._recorder.steps_run(row)
        self._same_batch = plain
        memory = state.memory
        used_blocks = memory.total_blocks - memory.free_blocks
        self._row = [
            self._index,
            start_ns,
            start_ns,
            0,
            0,
            0,
            plan.prefill_tokens,
            plan.decoding,
            len(state.running),
            state.waiting_requests,
            used_blocks,
            used_blocks,
            state.pool.context_tokens,
            self._preempted + len(plan.preempted),
        ]
        self._preempted = 0

    def passed(self, durations_ns: StepDurations, now_ns: int) -> None:
        """Steps of the row have ended, the last of them now."""
        row = self._row
        row[_END] = now_ns
        if not row[_STEPS]:
            row[_FIRST_STEP] = int(durations_ns[0])
        row[_LAST_STEP] = int(durations_ns[-1])
        row[_STEPS] += len(durations_ns)

    def uses(self, blocks: int) -> None:
        """So many blocks are in use as the row ends, so far."""
        self._row[_BLOCKS_AT_END] = blocks

    def batch_changes(self) -> None:
        """Some request leaves: what comes is another row."""
        self._same_batch = False

    def close(self) -> None:
        """Hand on the last row; of a step in progress it counts whom it preempted."""
        if self._row and (self._row[_STEPS] or self._row[_PREEMPTED]):
            self._recorder.steps_run(self._row)
