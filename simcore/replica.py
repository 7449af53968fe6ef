"""One replica: a process that plans a step, lets it take its time, and notes what came of it."""

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from simpy import Event, Interrupt

from policies.horizon import FOREVER
from simcore.clock import PLAN, STEP_END, Alarm, Clock, to_s
from simcore.cost.price_shares import RangeCounter
from simcore.cost.step_cost import StepCost
from simcore.cost.work import WorkCounter
from simcore.executor import SimulatedExecutor
from simcore.metrics.gap_tracker import GapTracker
from simcore.metrics.recorder import Recorder
from simcore.metrics.step_rows import StepRows
from simcore.metrics.token_gaps import StepDurations
from simcore.open_requests import OpenRequests
from simcore.request import Request
from simcore.scheduling.invariants import check_invariants
from simcore.scheduling.plan import BatchPlan
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.swapping import Swapping

if TYPE_CHECKING:
    from simcore.pipeline import Pipeline


class Replica:
    """Runs the step contract: plan, execute, commit, record.

    With ``fast_forward`` the steps of a plan that stands for more than one are executed in one jump, up to the next
    finish, shortage of memory or window crossing; an arrival that may change the plan ends the jump with the step in
    progress. Results are the same to the bit. ``check`` recounts all books after every step, for tests.

    With ``overlapped``, a step is scheduled when the one before it starts, as asynchronous engines do so that the
    accelerator never waits for the host; it cannot have who came later, unless nobody runs.
    """

    __slots__ = (
        "_alone",
        "_check",
        "_clock",
        "_cost",
        "_entry_counts",
        "_executor",
        "_fast_forward",
        "_idle",
        "_in_progress",
        "_interruptible",
        "_last_start_ns",
        "_next_step_unallocated",
        "_overlapped",
        "_pipeline",
        "_process",
        "_rows",
        "_sampled_rows",
        "_schedules_ahead",
        "clients_give_up",
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
        overlapped: bool = False,
        pipeline: "Pipeline | None" = None,
    ) -> None:
        self.index = index
        self.scheduler = scheduler
        self.work = WorkCounter(cost.window_tokens, cost.split)
        self.ranges = RangeCounter(cost)
        self.tokens = GapTracker(measure_since_ns)
        self.clients_give_up = False
        """Whether clients may give up, so that a jump must end with the step in which one does."""
        self._clock = clock
        self._cost = cost
        self._executor = SimulatedExecutor()
        self._rows = StepRows(index, recorder)
        self.requests = OpenRequests(clock, index, scheduler, self._executor, recorder, self._rows, self.tokens)
        self._alone = alone
        self._pipeline = pipeline
        self._fast_forward = fast_forward
        self._check = check
        self._idle: Event | None = None
        self._interruptible = False
        self._next_step_unallocated = False
        self._in_progress: tuple[BatchPlan, int, StepDurations] | None = None
        self._overlapped = overlapped
        prefetches = scheduler.loading is not None and scheduler.loading.tiers.prefetches
        self._entry_counts = overlapped and (prefetches or not scheduler.ordering.fixed_keys)
        """Whether it matters when the scheduler sees a request, even if there is no room for it."""
        self._schedules_ahead = overlapped and not self._entry_counts and scheduler.loading is None
        self._last_start_ns = 0
        self._sampled_rows = 0
        scheduler.step_price = self._expected_s
        if scheduler.loading is not None:
            scheduler.loading.on_loaded = self._look_again
        self._process = clock.process(self._run())

    def submit(self, request: Request, output_tokens: int) -> None:
        """Take in a request that just arrived; it will generate ``output_tokens``."""
        waits = self._overlapped and self._idle is None
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
        ends_ns = list(accumulate(map(int, durations_ns), initial=start_ns))[1:]
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
            ends_ns = list(accumulate(map(int, durations_ns), initial=start_ns))[1:]
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
        clock, scheduler, requests = self._clock, self.scheduler, self.requests
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
                elif not plan.preempted and not plan.dropped:
                    yield self._sleep(plan.retry_ns)
                continue
            self._rows.begin(plan, start_ns, scheduler)
            disturbed = plan.admits_arrivals or self.clients_give_up or self._entry_counts
            cut_short = self._alone and disturbed
            within_ns = next_event_ns - start_ns if cut_short else FOREVER
            if plan.retry_ns is not None:
                within_ns = min(within_ns, max(plan.retry_ns - start_ns, 1))
            if scheduler.incoming:
                within_ns = 0
            durations_ns = self._price(plan, within_ns)
            if scheduler.swapping is not None:
                durations_ns = self._after_swaps(scheduler.swapping, start_ns, durations_ns)
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
                ends_ns = list(accumulate(map(int, durations_ns), initial=start_ns))[1:]
                steps = bisect_left(ends_ns, clock.now_ns) + 1 + self._outlasts_arrivals(plan)
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

    def _expected_s(self, plan: BatchPlan) -> float:
        """What a step would take whose every chunk completes a prompt."""
        sampled_rows = plan.decoding + len(plan.chunks)
        return to_s(self._cost.step_ns(plan, self.scheduler.pool, sampled_rows)) if sampled_rows else 0.0

    def _outlasts_arrivals(self, plan: BatchPlan) -> bool:
        """Whether the step after that in which a request comes is sure to be like it, as it is scheduled already.

        With nobody in the queue, there is nobody that it could admit.
        """
        if not self._schedules_ahead or self.scheduler.waiting.size:
            return False
        return plan.retry_ns is None and not self.clients_give_up

    def _price(self, plan: BatchPlan, within_ns: int) -> StepDurations:
        """How long the steps to run now take: one, or as many as the plan stands for until ``within_ns`` have passed.

        The one in progress then is the last, unless the next is scheduled already.
        """
        scheduler, pool = self.scheduler, self.scheduler.pool
        if plan.chunks or plan.stalled:
            self._sampled_rows = self._rows_sampled(plan)
            return [self._cost.step_ns(plan, pool, self._sampled_rows)]
        steps = 1
        if plan.stable_steps > 1 and self._fast_forward:
            steps = min(plan.stable_steps, self._executor.steps_to_next_finish(pool))
            for window in pool.windows:
                steps = min(steps, window.steps_to_crossing(pool.steps))
            steps = scheduler.steps_before_shortage(steps)
        more = 1 if steps > 1 and within_ns > 0 and self._outlasts_arrivals(plan) else 0
        return self._cost.decode_steps_ns(pool, steps, within_ns, more)

    @staticmethod
    def _rows_sampled(plan: BatchPlan) -> int:
        """Tokens of a step that are sampled: of all who decode, and of those whose prompt it completes."""
        rows = plan.decoding
        for request, tokens, _ in plan.chunks:
            if tokens == request.tokens_to_compute:
                rows += 1
        return rows

    def _return(self, requests: Sequence[Request]) -> None:
        """Follow swapped-in requests again; a prefill is followed by its chunks."""
        for request in requests:
            if request.pool is not None:
                self.tokens.returned(request)
                self._executor.follow(request)

    def _after_swaps(self, swapping: Swapping, start_ns: int, durations_ns: StepDurations) -> StepDurations:
        """The step that moves blocks takes so much longer, and is one."""
        transfers_ns = swapping.space.busy_until_ns - start_ns
        return [int(durations_ns[0]) + transfers_ns] if transfers_ns > 0 else durations_ns

    def _end(self, plan: BatchPlan, start_ns: int, durations_ns: StepDurations, now_ns: int) -> None:
        """Note that the plan's steps, which began at ``start_ns``, are done."""
        scheduler, executor, pool = self.scheduler, self._executor, self.scheduler.pool
        steps = len(durations_ns)
        self._last_start_ns = now_ns - int(durations_ns[-1])
        if scheduler.groups is not None:
            scheduler.groups.took(plan, sum(map(int, durations_ns)))
        if plan.chunks or plan.stalled:
            self.work.count_step(plan, pool, self._sampled_rows)
            self.ranges.count_step(plan, pool, self._sampled_rows, durations_ns[0])
        else:
            self.work.count_decodes(pool, steps)
            self.ranges.count_decodes(pool, durations_ns)
        self._rows.passed(steps, now_ns)
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
