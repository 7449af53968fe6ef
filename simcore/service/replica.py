"""One replica: a process that plans a step, lets it take its time, and notes what came of it."""

from bisect import bisect_left, bisect_right
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from simpy import Event, Interrupt

from policies.horizon import FOREVER
from simcore.core.batch_plan import BatchPlan
from simcore.core.request import Request
from simcore.core.token_gaps import step_ends_ns
from simcore.cost.step_cost import StepCost
from simcore.recording.recorder import Recorder
from simcore.recording.step_log import StepLog
from simcore.scheduling.invariants import check_invariants
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.step import Executor, StepResult
from simcore.service.clock import PLAN, STEP_END, Alarm, Clock
from simcore.service.executor import SimulatedExecutor
from simcore.service.open_requests import OpenRequests


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """How a replica runs.

    With ``fast_forward`` like steps are executed in one jump; an arrival that may change the plan ends it with the step
    in progress, and so does a client that gives up, where ``clients_give_up``. Results are the same to the bit. One
    that is ``alone`` in its cluster looks ahead to the next event instead. ``check`` recounts all books after every
    step, for tests. Gaps between tokens that end by ``measure_since_ns`` are left out.

    With ``async_scheduling``, a step is scheduled when the one before it starts, as asynchronous engines do so that the
    accelerator never waits for the host; it cannot have who came later, unless nobody runs, and does not know yet who
    ends with the step before it.
    """

    measure_since_ns: int = 0
    alone: bool = False
    fast_forward: bool = True
    check: bool = False
    async_scheduling: bool = False
    clients_give_up: bool = False


class Replica:
    """Runs the step contract of ``simcore.scheduling.step`` on the virtual clock: plan, execute, commit, record."""

    __slots__ = (
        "_clock",
        "_config",
        "_entry_counts",
        "_executor",
        "_idle",
        "_in_progress",
        "_interruptible",
        "_last_start_ns",
        "_next_step_unallocated",
        "_process",
        "index",
        "log",
        "requests",
        "scheduler",
    )

    def __init__(
        self,
        clock: Clock,
        index: int,
        scheduler: Scheduler,
        cost: StepCost,
        recorder: Recorder,
        config: ReplicaConfig,
    ) -> None:
        self.index = index
        self.scheduler = scheduler
        self.log = StepLog(index, recorder, cost, config.measure_since_ns)
        self._clock = clock
        self._config = config
        self._executor = self._make_executor(cost)
        self.requests = OpenRequests(clock, index, scheduler, self._executor.ends, recorder, self.log)
        self._idle: Event | None = None
        self._interruptible = False
        self._next_step_unallocated = False
        self._in_progress: tuple[BatchPlan, int, StepResult] | None = None
        self._entry_counts = config.async_scheduling and _sees_entries(scheduler)
        self._last_start_ns = 0
        loading = scheduler.state.loading
        if loading is not None:
            loading.on_loaded = self._look_again
        self._process = clock.process(self._run())

    def _make_executor(self, cost: StepCost) -> Executor:
        config, scheduler = self._config, self.scheduler
        unseen = not (config.clients_give_up or _sees_entries(scheduler)) and scheduler.state.loading is None
        return SimulatedExecutor(scheduler, cost, config.fast_forward, config.async_scheduling and unseen)

    def submit(self, request: Request, output_tokens: int) -> None:
        """Take in a request that just arrived; it will generate ``output_tokens``."""
        state = self.scheduler.state
        waits = self._config.async_scheduling and self._idle is None
        if state.groups is not None and not waits:
            self.catch_up()
        self.requests.accept(request, output_tokens)
        if waits:
            state.incoming.append((self._clock.now_ns, request))
        else:
            self.scheduler.submit(request, self._clock.now_ns)
        self._look_again()

    def give_up(self, request: Request, reason: str) -> None:
        """Abort an open request whose client gives up now; what it holds is freed when the step in progress ends."""
        self.catch_up()
        self.requests.give_up(request, reason)
        self.scheduler.cancel(request)
        self._look_again()

    def _receive(self, until_ns: int) -> None:
        """Let the scheduler see who came until then."""
        incoming = self.scheduler.state.incoming
        while incoming and incoming[0][0] <= until_ns:
            came_ns, request = incoming.popleft()
            self.scheduler.submit(request, came_ns)

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
        plan, start_ns, result = self._in_progress
        now_ns = self._clock.now_ns
        ends_ns = step_ends_ns(start_ns, result.durations_ns)
        steps = bisect_right(ends_ns, now_ns)
        if 0 < steps < len(ends_ns):
            self._in_progress = (plan, ends_ns[steps - 1], result.after(steps))
            self._end(plan, start_ns, result.first(steps), ends_ns[steps - 1])
            self._next_step_unallocated = True
        if self._next_step_unallocated and self._in_progress[1] < now_ns:
            self._allocate_next_step()

    def close(self, end_ns: int) -> None:
        """Hand the last rows to the recorder, unfinished requests among them; the run was ended at ``end_ns``.

        Of a jump in progress, the steps that end before then still count, and the next one has begun.
        """
        if self._in_progress is not None:
            plan, start_ns, result = self._in_progress
            ends_ns = step_ends_ns(start_ns, result.durations_ns)
            steps = bisect_left(ends_ns, end_ns)
            if steps:
                done = result if steps == len(ends_ns) else result.first(steps)
                self._end(plan, start_ns, done, ends_ns[steps - 1])
                self._next_step_unallocated = True
            self._allocate_next_step()
        self.requests.close()
        self.log.rows.close()

    def _allocate_next_step(self) -> None:
        """Take the blocks that planning the next step of a jump would have taken, if that was not done yet."""
        if self._next_step_unallocated:
            self._next_step_unallocated = False
            self.scheduler.memory.allocate(self.scheduler.state.pool.blocks_due())

    def _run(self) -> Generator[Event, Any, None]:
        clock, executor = self._clock, self._executor
        while True:
            start_ns = clock.now_ns
            if clock.next_event_ns == start_ns:
                yield Alarm(clock, 0, PLAN)
            if executor.ready_ns > start_ns:
                yield Alarm(clock, executor.ready_ns - start_ns, PLAN)
                continue
            plan = self._plan(start_ns)
            if plan.empty:
                self.log.rows.idles(plan)
                if self.scheduler.state.incoming:
                    self._receive(start_ns)
                elif not (plan.preempted or plan.dropped or plan.released):
                    yield self._sleep(plan.retry_ns)
                continue
            result = self._execute(plan, start_ns)
            end_ns = start_ns + result.elapsed_ns
            try:
                if end_ns < clock.next_event_ns:
                    clock.skip_to(end_ns)
                else:
                    yield Alarm(clock, end_ns - start_ns, STEP_END)
                self._interruptible = False
            except Interrupt:
                end_ns = self._cut_short()
                if end_ns > clock.now_ns:
                    yield Alarm(clock, end_ns - clock.now_ns, STEP_END)
            if self._in_progress is not None:
                plan, start_ns, result = self._in_progress
                self._in_progress = None
                if self._next_step_unallocated:
                    self._allocate_next_step()
                self._end(plan, start_ns, result, end_ns)

    def _plan(self, start_ns: int) -> BatchPlan:
        """Have the next step planned, with all who can be seen, and tell of those who leave the batch by it."""
        scheduler, requests = self.scheduler, self.requests
        for request in scheduler.drop_cancelled():
            requests.forget(request)
        if scheduler.state.incoming:
            self._receive(self._last_start_ns if scheduler.state.running else start_ns)
        plan = scheduler.plan(start_ns)
        if plan.preempted or plan.swapped_in:
            self.log.planned(plan)
            for request in plan.swapped_in:
                if request.pool is not None:  # a prefill is followed by its chunks
                    self._executor.ends.follow(request)
        for request in plan.dropped:
            requests.drop(request)
        return plan

    def _execute(self, plan: BatchPlan, start_ns: int) -> StepResult:
        """Have a plan priced, as far as nothing that is known comes between its steps."""
        state, config = self.scheduler.state, self._config
        self.log.rows.begin(plan, start_ns, state)
        disturbed = plan.admits_arrivals or config.clients_give_up or self._entry_counts
        within_ns = self._clock.next_event_ns - start_ns if config.alone and disturbed else FOREVER
        if plan.retry_ns is not None:
            within_ns = min(within_ns, max(plan.retry_ns - start_ns, 1))
        if state.incoming:
            within_ns = 0
        result = self._executor.execute(plan, start_ns, within_ns)
        self._interruptible = disturbed and len(result.durations_ns) > 1 and not config.alone
        self._in_progress = (plan, start_ns, result)
        return result

    def _cut_short(self) -> int:
        """End the jump in progress with the step in progress, or the one that is scheduled already; returns when.

        That is now if somebody came as a step ended, which is noted already: then nothing is in progress any more.
        """
        assert self._in_progress is not None
        plan, start_ns, result = self._in_progress
        now_ns = self._clock.now_ns
        if start_ns == now_ns:
            self._executor.resume(result)
            self._in_progress, self._next_step_unallocated = None, False
            return now_ns
        ends_ns = step_ends_ns(start_ns, result.durations_ns)
        steps = bisect_left(ends_ns, now_ns) + 1 + self._executor.outlasts_arrivals(plan)
        if steps < len(ends_ns):
            self._executor.resume(result)
            self._in_progress = (plan, start_ns, result.first(steps))
            return ends_ns[steps - 1]
        return ends_ns[-1]

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

    def _end(self, plan: BatchPlan, start_ns: int, result: StepResult, now_ns: int) -> None:
        """Note that the plan's steps, which began at ``start_ns``, are done."""
        scheduler, ends = self.scheduler, self._executor.ends
        self._last_start_ns = now_ns - int(result.durations_ns[-1])
        self.log.ran(plan, scheduler.state.pool, result, start_ns, now_ns)
        done = scheduler.commit(plan, result, now_ns)
        self.log.committed(plan, done, now_ns)
        if plan.decoding:
            for request in plan.stalled:
                ends.follow(request)
        for request in done.decoding:
            ends.follow(request)
        for request in done.finished:
            self.requests.finish(request, now_ns)
        if self._config.check:
            check_invariants(scheduler.state)


def _sees_entries(scheduler: Scheduler) -> bool:
    """Whether it matters when the scheduler sees a request, even if there is no room for it."""
    loading = scheduler.state.loading
    return (loading is not None and loading.tiers.prefetches) or not scheduler.config.ordering.fixed_keys
