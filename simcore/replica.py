"""One replica: a process that plans a step, lets it take its time, and notes what came of it."""

from bisect import bisect_left
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from simpy import Event, Interrupt

from simcore.clock import PLAN, STEP_END, Alarm, Clock, to_s
from simcore.cost.step_cost import StepCost, Work
from simcore.executor import SimulatedExecutor
from simcore.metrics.recorder import Recorder
from simcore.metrics.token_gaps import StepEnds, TokenGaps
from simcore.request import UNSET, Request
from simcore.scheduling.plan import BatchPlan
from simcore.scheduling.scheduler import Scheduler


@dataclass(slots=True)
class ReplicaTotals:
    """What a replica did in a run; whole numbers, so that the order of adding does not matter."""

    steps: int = 0
    busy_ns: int = 0
    host_ns: int = 0
    prefill_tokens: int = 0
    decode_tokens: int = 0
    preemptions: int = 0
    flops: int = 0
    moved_bytes: int = 0

    def add(self, plan: BatchPlan, steps: int, duration_ns: int, host_ns: int, work: Work) -> None:
        """Count ``steps`` steps of a plan."""
        self.steps += steps
        self.busy_ns += duration_ns
        self.host_ns += host_ns
        self.prefill_tokens += plan.prefill_tokens
        self.decode_tokens += steps * plan.decoding
        self.preemptions += len(plan.preempted)
        self.flops += work.flops
        self.moved_bytes += work.moved_bytes


class Replica:
    """Runs the step contract: plan, execute, commit, record.

    With ``fast_forward`` the steps of a plan that stands for more than one are executed in one jump, up to the next
    finish, shortage of memory or window crossing; an arrival that may change the plan ends the jump with the step in
    progress. Results are the same to the bit. ``check`` recounts all books after every step, for tests.
    """

    def __init__(
        self,
        clock: Clock,
        index: int,
        scheduler: Scheduler,
        cost: StepCost,
        recorder: Recorder,
        measure_since_ns: int = 0,
        fast_forward: bool = True,
        check: bool = False,
    ) -> None:
        self.index = index
        self.scheduler = scheduler
        self.totals = ReplicaTotals()
        self.gaps = TokenGaps(measure_since_ns)
        self.open_requests: dict[int, Request] = {}
        self._clock = clock
        self._cost = cost
        self._recorder = recorder
        self._executor = SimulatedExecutor()
        self._fast_forward = fast_forward
        self._check = check
        self._idle: Event | None = None
        self._interruptible = False
        self._last_token_ns = 0
        self._laggards: dict[int, int] = {}
        self._steps_row: list[int] = []
        self._same_batch = False
        self._process = clock.process(self._run())

    def submit(self, request: Request, output_tokens: int) -> None:
        """Take in a request that just arrived; it will generate ``output_tokens``."""
        self._executor.expect(request, output_tokens)
        self.open_requests[request.number] = request
        self.scheduler.submit(request, to_s(self._clock.now_ns))
        if self._idle is not None:
            self._idle.succeed()
            self._idle = None
        elif self._interruptible:
            self._interruptible = False
            self._process.interrupt()

    def close(self) -> None:
        """Hand the last rows to the recorder, unfinished requests among them; the run is over."""
        for request in self.open_requests.values():
            self._recorder.request_unfinished(request, self.index)
        if self._steps_row:
            self._recorder.steps_run(self._steps_row)

    def _run(self) -> Generator[Event, Any, None]:
        clock, scheduler = self._clock, self.scheduler
        while True:
            if clock.more_now:
                yield Alarm(clock, 0, PLAN)
            plan = scheduler.plan(clock.now_ns)
            for request in plan.preempted:
                self._note_preempted(request)
            if plan.empty and not plan.preempted:
                self._idle = Event(clock)
                yield self._idle
            elif plan.empty:
                continue
            else:
                self._open_steps_row(plan)
                if plan.stable_steps > 1 and self._fast_forward:
                    yield from self._jump(plan)
                else:
                    yield from self._step(plan)

    def _step(self, plan: BatchPlan) -> Generator[Event, Any, None]:
        pool, cost = self.scheduler.pool, self._cost
        start_ns = self._clock.now_ns
        if plan.chunks or plan.stalled:
            completing = sum(chunk.tokens == chunk.request.tokens_to_compute for chunk in plan.chunks)
            duration_ns = cost.step_ns(plan, pool, plan.decoding + completing)
            work = cost.step_work(plan, pool, plan.decoding + completing)
        else:
            duration_ns = cost.decode_steps_ns(pool, 1)[0]
            work = cost.decode_work(pool, 1)
        yield Alarm(self._clock, duration_ns, STEP_END)
        self._end(plan, start_ns, [duration_ns], work)

    def _jump(self, plan: BatchPlan) -> Generator[Event, Any, None]:
        clock, pool = self._clock, self.scheduler.pool
        start_ns = clock.now_ns
        steps = min(plan.stable_steps, self._executor.steps_to_next_finish(pool))
        for window in pool.windows:
            crossing = window.steps_to_crossing(pool.steps)
            if crossing is not None:
                steps = min(steps, crossing)
        steps = self.scheduler.steps_before_shortage(steps)
        ends_ns = self._cost.decode_steps_ns(pool, steps)
        self._interruptible = plan.admits_arrivals and steps > 1
        try:
            yield Alarm(clock, int(ends_ns[-1]), STEP_END)
            self._interruptible = False
        except Interrupt:
            elapsed_ns = clock.now_ns - start_ns
            steps = bisect_left(ends_ns, elapsed_ns) + 1
            ends_ns = ends_ns[:steps]
            if ends_ns[-1] > elapsed_ns:
                yield Alarm(clock, int(ends_ns[-1]) - elapsed_ns, STEP_END)
        self._end(plan, start_ns, ends_ns, self._cost.decode_work(pool, steps))

    def _end(self, plan: BatchPlan, start_ns: int, ends_ns: StepEnds, work: Work) -> None:
        """Note that the plan's steps, which end at these times after ``start_ns``, are done."""
        scheduler, executor, pool = self.scheduler, self._executor, self.scheduler.pool
        now_ns = self._clock.now_ns
        steps = len(ends_ns)
        host_ns = steps * round(self._cost.host_ns(plan.decoding + len(plan.chunks)))
        self.totals.add(plan, steps, now_ns - start_ns, host_ns, work)
        row = self._steps_row
        row[2] = now_ns
        row[3] += steps
        if plan.decoding:
            self._note_gaps(plan, start_ns, ends_ns)
        stay_behind = pool.size > 0 and not plan.decoding

        completed = scheduler.commit(plan, steps)
        for request in plan.stalled:
            executor.follow(request)
        if plan.decoding:
            for request in executor.finished(pool):
                self._finish(request, now_ns)
        for request in completed:
            if request.first_token_ns == UNSET:
                request.first_token_ns = now_ns
            elif request.lost_token_ns != UNSET:
                self.gaps.add(now_ns, now_ns - request.lost_token_ns, 1)
                request.lost_token_ns = UNSET
            if executor.sample(request):
                self._finish(request, now_ns)
            else:
                scheduler.start_decoding(request)
                executor.follow(request)
                if stay_behind:
                    self._laggards[request.number] = now_ns
        if not stay_behind:
            self._last_token_ns = now_ns
        if self._check:
            scheduler.check_invariants()

    def _finish(self, request: Request, now_ns: int) -> None:
        output_tokens = self._executor.forget(request)
        self.scheduler.finish(request)
        del self.open_requests[request.number]
        self._same_batch = False
        self._recorder.request_finished(request, self.index, now_ns, output_tokens)
        if request.done is not None:
            request.done.succeed()

    def _note_preempted(self, request: Request) -> None:
        last_token_ns = self._laggards.pop(request.number, self._last_token_ns)
        if request.known_output_tokens and request.lost_token_ns == UNSET:
            request.lost_token_ns = last_token_ns

    def _note_gaps(self, plan: BatchPlan, start_ns: int, ends_ns: StepEnds) -> None:
        """Count the gaps that end with these steps' tokens.

        ``_laggards`` are members of the pool whose last token is not of the time ``_last_token_ns``, with its time.
        """
        gaps, laggards = self.gaps, self._laggards
        if laggards or plan.stalled:
            stalled = {request.number for request in plan.stalled}
            first_end_ns = start_ns + int(ends_ns[0])
            caught_up = [number for number in laggards if number not in stalled]
            for number in caught_up:
                gaps.add(first_end_ns, first_end_ns - laggards.pop(number), 1)
            gaps.add(first_end_ns, first_end_ns - self._last_token_ns, plan.decoding - len(caught_up))
            for number in stalled:
                laggards.setdefault(number, self._last_token_ns)
            if len(ends_ns) > 1:
                gaps.add_steps(start_ns, ends_ns[1:], plan.decoding, first_end_ns)
        else:
            gaps.add_steps(start_ns, ends_ns, plan.decoding, self._last_token_ns)

    def _open_steps_row(self, plan: BatchPlan) -> None:
        """Begin a row of like steps, or go on with the last: decode steps of the same batch, right before.

        How many steps a jump takes depends on arrivals; whether the batch is the same does not.
        """
        scheduler, start_ns = self.scheduler, self._clock.now_ns
        plain = not (plan.chunks or plan.stalled or plan.preempted)
        row = self._steps_row
        if row:
            if plain and self._same_batch and row[2] == start_ns:
                return
            self._recorder.steps_run(row)
        self._same_batch = plain
        self._steps_row = [
            self.index,
            start_ns,
            start_ns,
            0,
            plan.prefill_tokens,
            plan.decoding,
            scheduler.running_requests,
            scheduler.waiting_requests,
            scheduler.memory.used_blocks,
            scheduler.pool.context_tokens,
            len(plan.preempted),
        ]
