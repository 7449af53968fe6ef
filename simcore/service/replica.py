"""One replica: a process that plans a step, lets it take its time, and notes what came of it."""

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

from simpy import Event, Interrupt

from policies.horizon import FOREVER
from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import PLAN, STEP_END, Alarm, Clock, to_s
from simcore.core.request import Request
from simcore.core.token_gaps import StepDurations
from simcore.cost.price_shares import RangeCounter
from simcore.cost.step_cost import StepCost
from simcore.cost.work import WorkCounter
from simcore.recording.gap_tracker import GapTracker
from simcore.recording.recorder import Recorder
from simcore.recording.step_rows import StepRows
from simcore.scheduling.invariants import check_invariants
from simcore.scheduling.scheduler import Scheduler
from simcore.service.execution import Execution, after_swaps, step_ends_ns
from simcore.service.executor import SimulatedExecutor
from simcore.service.open_requests import OpenRequests

if TYPE_CHECKING:
    from simcore.service.pipeline import Pipeline


class Replica:
    """Runs the step contract: plan, execute, commit, record.

    With ``fast_forward`` like steps are executed in one jump; an arrival that may change the plan ends it with the step
    in progress, and so does a client that gives up, where ``clients_give_up``. Results are the same to the bit.
    ``check`` recounts all books after every step, for tests.

    With ``async_scheduling``, a step is scheduled when the one before it starts, as asynchronous engines do so that the
    accelerator never waits for the host; it cannot have who came later, unless nobody runs, and does not know yet who
    ends with the step before it.
    """

    __slots__ = (
        "_alone",
        "_async_scheduling",
        "_check",
        "_clients_give_up",
        "_clock",
        "_entry_counts",
        "_execution",
        "_executor",
        "_idle",
        "_in_progress",
        "_interruptible",
        "_last_start_ns",
        "_next_step_unallocated",
        "_pipeline",
        "_process",
        "_rows",
        "index",
        "ranges",
        "requests",
        "scheduler",
        "tokens",
        "work",
    )

    def __init__(
        self,
        clock: Clock,
        index: int,
        scheduler: Scheduler,
        cost: StepCost,
        recorder: Recorder,
        measure_since_ns: int = 0,
        alone: bool = False,
        fast_forward: bool = True,
        check: bool = False,
        async_scheduling: bool = False,
        clients_give_up: bool = False,
        pipeline: "Pipeline | None" = None,
    ) -> None:
        self.index = index
        self.scheduler = scheduler
        self.work = WorkCounter(cost.window_tokens, cost.split)
        self.ranges = RangeCounter(cost)
        self.tokens = GapTracker(measure_since_ns)
        self._clock = clock
        self._executor = SimulatedExecutor()
        self._rows = StepRows(index, recorder)
        self.requests = OpenRequests(clock, index, scheduler, self._executor, recorder, self._rows, self.tokens)
        self._alone = alone
        self._pipeline = pipeline
        self._check = check
        self._idle: Event | None = None
        self._interruptible = False
        self._next_step_unallocated = False
        self._in_progress: tuple[BatchPlan, int, StepDurations] | None = None
        self._async_scheduling = async_scheduling
        self._clients_give_up = clients_give_up
        prefetches = scheduler.loading is not None and scheduler.loading.tiers.prefetches
        self._entry_counts = async_scheduling and (prefetches or not scheduler.ordering.fixed_keys)
        """Whether it matters when the scheduler sees a request, even if there is no room for it."""
        schedules_ahead = async_scheduling and not (self._entry_counts or clients_give_up) and scheduler.loading is None
        self._execution = Execution(scheduler, cost, self._executor, fast_forward, schedules_ahead)
        self._last_start_ns = 0
        scheduler.step_price = self._execution.expected_s
        if scheduler.loading is not None:
            scheduler.loading.on_loaded = self._look_again
        self._process = clock.process(self._run())

    def submit(self, request: Request, output_tokens: int) -> None:
        """Take in a request that just arrived; it will generate ``output_tokens``."""
        waits = self._async_scheduling and self._idle is None
        if self.scheduler.groups is not None and not waits:
            self.catch_up()
        self.requests.accept(request, output_tokens)
        if waits:
            self.scheduler.incoming.append((self._clock.now_ns, request))
        else:
            self.scheduler.submit(request, to_s(self._clock.now_ns))
        self._look_again()

    def give_up(self, request: Request, reason: str) -> None:
        """Abort an open request whose client gives up now; what it holds is freed when the step in progress ends."""
        self.catch_up()
        self.requests.give_up(request, reason)
        self._look_again()

    def _receive(self, until_ns: int) -> None:
        """Let the scheduler see who came until then."""
        incoming = self.scheduler.incoming
        while incoming and incoming[0][0] <= until_ns:
            came_ns, request = incoming.popleft()
            self.scheduler.submit(request, to_s(came_ns))

    def _look_again(self) -> None:
        """Plan anew as soon as the step in progress is done."""
        if self._idle is not None:
            self._wake(self._idle)
        elif self._interruptible:
            self._interruptible = False
            self._process.interrupt()

    def catch_up(self) -> None:
        """Note the steps of a jump in progress that have ended, so that all views are as of now."""
        if self._in_progress is None:
            return
        plan, start_ns, durations_ns = self._in_progress
        now_ns = self._clock.now_ns
        ends_ns = step_ends_ns(start_ns, durations_ns)
        steps = bisect_right(ends_ns, now_ns)
        if 0 < steps < len(ends_ns):
            self._in_progress = (plan, ends_ns[steps - 1], durations_ns[steps:])
            self._end(plan, start_ns, durations_ns[:steps], ends_ns[steps - 1])
            self._next_step_unallocated = True
        if self._next_step_unallocated and self._in_progress[1] < now_ns:
            self._allocate_next_step()

    def close(self, end_ns: int) -> None:
        """Hand the last rows to the recorder, unfinished requests among them; the run was ended at ``end_ns``.

        Of a jump in progress, the steps that end before then still count, and the next one has begun.
        """
        if self._in_progress is not None:
            plan, start_ns, durations_ns = self._in_progress
            ends_ns = step_ends_ns(start_ns, durations_ns)
            steps = bisect_left(ends_ns, end_ns)
            if steps:
                self._end(plan, start_ns, durations_ns[:steps], ends_ns[steps - 1])
                self._next_step_unallocated = True
            self._allocate_next_step()
        self.requests.close()
        self._rows.close()

    def _allocate_next_step(self) -> None:
        """Take the blocks that planning the next step of a jump would have taken, if that was not done yet."""
        if self._next_step_unallocated:
            self._next_step_unallocated = False
            self.scheduler.memory.allocate(self.scheduler.pool.blocks_due())

    def _run(self) -> Generator[Event, Any, None]:
        clock, scheduler, requests, execution = self._clock, self.scheduler, self.requests, self._execution
        while True:
            start_ns = clock.now_ns
            next_event_ns = clock.next_event_ns
            if next_event_ns == start_ns:
                yield Alarm(clock, 0, PLAN)
                next_event_ns = clock.next_event_ns
            if self._pipeline is not None and self._pipeline.entry_ns > start_ns:
                yield Alarm(clock, self._pipeline.entry_ns - start_ns, PLAN)
                continue
            if requests.given_up:
                requests.abort_given_up()
            if scheduler.incoming:
                self._receive(self._last_start_ns if scheduler.running else start_ns)
            plan = scheduler.plan(start_ns)
            ended = scheduler.release_ended()
            for request in plan.preempted:
                self.tokens.preempted(request)
            if plan.swapped_in:
                self._return(plan.swapped_in)
            for request in plan.dropped:
                requests.drop(request)
            if plan.dropped or scheduler.loading is not None:
                next_event_ns = clock.next_event_ns  # what dropping led to may be due at once, and so may a transfer
            if not plan.decoding and not plan.chunks:
                self._rows.idles(plan)
                if scheduler.incoming:
                    self._receive(start_ns)
                elif not plan.preempted and not plan.dropped and not ended:
                    yield self._sleep(plan.retry_ns)
                continue
            self._rows.begin(plan, start_ns, scheduler)
            disturbed = plan.admits_arrivals or self._clients_give_up or self._entry_counts
            cut_short = self._alone and disturbed
            within_ns = next_event_ns - start_ns if cut_short else FOREVER
            if plan.retry_ns is not None:
                within_ns = min(within_ns, max(plan.retry_ns - start_ns, 1))
            if scheduler.incoming:
                within_ns = 0
            durations_ns = execution.durations_ns(plan, start_ns, within_ns)
            if scheduler.swapping is not None:
                durations_ns = after_swaps(scheduler.swapping, start_ns, durations_ns)
            end_ns = start_ns + (sum(durations_ns) if isinstance(durations_ns, list) else int(durations_ns.sum()))
            self._interruptible = disturbed and len(durations_ns) > 1 and not self._alone
            self._in_progress = (plan, start_ns, durations_ns)
            try:
                if end_ns < next_event_ns:
                    clock.skip_to(end_ns)
                else:
                    yield Alarm(clock, end_ns - start_ns, STEP_END)
                self._interruptible = False
            except Interrupt:
                plan, start_ns, durations_ns = self._in_progress
                if start_ns == clock.now_ns:
                    # The arrival came as a step ended, and that step is noted already.
                    self._in_progress, self._next_step_unallocated = None, False
                    continue
                ends_ns = step_ends_ns(start_ns, durations_ns)
                steps = bisect_left(ends_ns, clock.now_ns) + 1 + execution.outlasts_arrivals(plan)
                durations_ns = durations_ns[:steps]
                end_ns = ends_ns[len(durations_ns) - 1]
                self._in_progress = (plan, start_ns, durations_ns)
                if end_ns > clock.now_ns:
                    yield Alarm(clock, end_ns - clock.now_ns, STEP_END)
            plan, start_ns, durations_ns = self._in_progress
            self._in_progress = None
            if self._next_step_unallocated:
                self._allocate_next_step()
            self._end(plan, start_ns, durations_ns, end_ns)

    def _sleep(self, retry_ns: int | None) -> Event:
        """The event that ends idleness: an arrival, or the time at which the policies want to be asked again."""
        idle = self._idle = Event(self._clock)
        if retry_ns is not None:
            alarm = Alarm(self._clock, max(retry_ns - self._clock.now_ns, 1), PLAN)
            alarm.callbacks.append(lambda _: self._wake(idle))
        return idle

    def _wake(self, idle: Event) -> None:
        if self._idle is idle:
            self._idle = None
            idle.succeed()

    def _return(self, requests: Sequence[Request]) -> None:
        """Follow swapped-in requests again; a prefill is followed by its chunks."""
        for request in requests:
            if request.pool is not None:
                self.tokens.returned(request)
                self._executor.follow(request)

    def _end(self, plan: BatchPlan, start_ns: int, durations_ns: StepDurations, now_ns: int) -> None:
        """Note that the plan's steps, which began at ``start_ns``, are done."""
        scheduler, executor, pool = self.scheduler, self._executor, self.scheduler.pool
        steps = len(durations_ns)
        self._last_start_ns = now_ns - int(durations_ns[-1])
        if scheduler.groups is not None:
            scheduler.groups.took(plan, sum(map(int, durations_ns)))
        if plan.chunks or plan.stalled:
            self.work.count_step(plan, pool, self._execution.sampled_rows)
            self.ranges.count_step(plan, pool, self._execution.sampled_rows, durations_ns[0])
        else:
            self.work.count_decodes(pool, steps)
            self.ranges.count_decodes(pool, durations_ns)
        self._rows.passed(durations_ns, now_ns)
        stay_behind = pool.size > 0 and not plan.decoding
        if plan.decoding:
            self.tokens.decoded(plan, start_ns, durations_ns)
            scheduler.commit_decodes(plan, steps)
            self._rows.uses(scheduler.memory.total_blocks - scheduler.memory.free_blocks)
            for request in plan.stalled:
                executor.follow(request)
            for request in executor.finished(pool):
                self.requests.finish(request, now_ns)
        for request in scheduler.commit_chunks(plan) if plan.chunks else ():
            self.tokens.prefilled(request, now_ns)
            if executor.sample(request):
                self.requests.finish(request, now_ns)
            else:
                scheduler.start_decoding(request)
                executor.follow(request)
                if stay_behind:
                    self.tokens.joined(request, now_ns)
        if not stay_behind:
            self.tokens.last_token_ns = now_ns
        if self._check:
            check_invariants(scheduler)
