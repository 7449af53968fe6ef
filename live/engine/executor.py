"""The executor of real plans: has the model compute their tokens, and says how long it took."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Protocol

import torch

from live.engine.outputs import LiveOutputs
from live.engine.sequence import CallersSequence, LiveSequence, Sibling
from live.engine.step_times import StepTimes
from live.engine.wall_clock import WallClock
from live.paging.kv_tensors import KVTensors
from live.paging.step_batch import SequenceInput
from live.sampling.sampler import Row, sample_rows
from simcore.core.batch_plan import BatchPlan
from simcore.core.request import Request
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.step import StepResult


class Runner(Protocol):
    """Whoever computes steps: ``live.runner.ModelRunner``, or something quick in its place."""

    @property
    def kv(self) -> KVTensors:
        """Keys and values."""

    def run(self, sequences: Sequence[SequenceInput]) -> torch.Tensor:
        """Logits [rows, vocabulary] in the order of ``sequences``."""


class LiveExecutor:
    """Executes plans one step at a time and times them on the wall clock.

    A step lasts from the end of the one before it, or from the event that ended idleness, until its tokens have been
    handed out: all that the host does is in it.
    """

    def __init__(self, scheduler: Scheduler, runner: Runner, clock: WallClock, vocabulary: int) -> None:
        self.times = StepTimes()
        self.ends = LiveOutputs(vocabulary)
        self._scheduler = scheduler
        self._runner = runner
        self._clock = clock

    @property
    def ready_ns(self) -> int:
        """When a step may begin at the earliest."""
        return 0

    def resume(self, result: StepResult) -> None:
        """Nothing to take note of, as a result is never more than one step."""

    def outlasts_arrivals(self, plan: BatchPlan) -> bool:
        """Whether the step after this one is planned already: never."""
        return False

    def execute(self, plan: BatchPlan, start_ns: int, within_ns: int) -> StepResult:
        """See ``Executor``: one step, computed."""
        clock = self._clock
        planned_ns = clock.wall_ns
        self._move(plan)
        inputs, owners, counts = self._inputs(plan)
        made_ns = clock.wall_ns
        logits = self._runner.run(inputs)
        if logits.is_cuda:
            torch.cuda.synchronize(logits.device)
        passed_ns = clock.wall_ns
        rows, places = self._rows(owners)
        if len(places) != len(logits):
            logits = logits[torch.tensor(places, device=logits.device)]
        sampled = iter(sample_rows(logits, rows))
        sampled_ns = clock.wall_ns
        ended = set()
        for request, sequence in owners:
            if sequence.add(next(sampled)):
                ended.add(request.number)
            for sibling in _waiting_siblings(sequence):
                sibling.sequence.add(next(sampled))
        result = StepResult([0], self._in_order(plan, ended), len(owners) if plan.chunks or plan.stalled else 0)
        end_ns = max(clock.wall_ns, start_ns + 1)
        result.durations_ns = [end_ns - start_ns]
        before_ns = max(planned_ns - start_ns, 0)
        parts = (before_ns, made_ns - planned_ns, passed_ns - made_ns, sampled_ns - passed_ns, end_ns - sampled_ns)
        self.times.add(start_ns, parts, counts)
        return result

    def _move(self, plan: BatchPlan) -> None:
        """Move blocks as the plan says, before anything is computed."""
        kv = self._runner.kv
        for copies, move in ((plan.copies_out, kv.swap_out), (plan.copies_in, kv.swap_in), (plan.copies, kv.copy)):
            if copies:
                move([copy.source for copy in copies], [copy.target for copy in copies])

    def _inputs(
        self, plan: BatchPlan
    ) -> tuple[list[SequenceInput], list[tuple[Request, LiveSequence]], tuple[int, ...]]:
        """What each request brings, whose next token is sampled, and what there is to compute (``COUNTS``)."""
        memory, sequences = self._scheduler.memory, self.ends.sequences
        inputs: list[SequenceInput] = []
        owners: list[tuple[Request, LiveSequence]] = []
        decoding = decode_context = pairs = chunk_context = 0
        for request, new_tokens in self._scheduler.scheduled(plan):
            sequence, before = sequences[request.number], request.tokens_in_memory
            tokens = sequence.between(before, before + new_tokens)
            complete = request.pool is not None or new_tokens == request.tokens_to_compute
            inputs.append(SequenceInput(tokens, before, memory.block_table(request, new_tokens), int(complete)))
            if complete:
                owners.append((request, sequence))
            if request.pool is not None:
                decoding += 1
                decode_context += before
            else:
                pairs += new_tokens * before + new_tokens * (new_tokens + 1) // 2
                chunk_context += before
        moved = len(plan.copies_out) + len(plan.copies_in) + len(plan.copies)
        chunks = len(plan.chunks), plan.prefill_tokens, pairs, chunk_context
        return inputs, owners, (decoding, decode_context, *chunks, len(owners), moved)

    def _rows(self, owners: Sequence[tuple[Request, LiveSequence]]) -> tuple[list[Row], list[int]]:
        """How each token is chosen, and from which row of logits: siblings choose from that of the first."""
        rows, places = [], []
        for place, (_, sequence) in enumerate(owners):
            chosen = [sequence, *(sibling.sequence for sibling in _waiting_siblings(sequence))]
            rows += [each.row() for each in chosen]
            places += [place] * len(chosen)
        return rows, places

    def _in_order(self, plan: BatchPlan, ended: set[int]) -> list[Request]:
        """Who has ended, in the order in which a simulation notes it: by admission where some decode."""
        if not ended:
            return []
        running = self._scheduler.state.running
        found = [chunk.request for chunk in plan.chunks if chunk.request.number in ended]
        found += [running[number] for number in ended if running[number].pool is not None]
        if plan.decoding:
            found.sort(key=attrgetter("admission"))
        return found


def _waiting_siblings(sequence: LiveSequence) -> list[Sibling]:
    """Those that take their first token with this sequence's; none once they have."""
    if not isinstance(sequence, CallersSequence):
        return []
    return [sibling for sibling in sequence.siblings if not sibling.sequence.output_tokens]
