"""One replica: it plans a step, lets it take its time, and notes what came of it."""

from bisect import bisect_left, bisect_right

from simpy import Event

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
from simcore.service.open_requests import OpenRequests
from simcore.service.paced_executor import simulated_executor
from simcore.service.replica_config import ReplicaConfig, sees_entries


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
        "_step_end",
        "index",
        "log",
        "requests",
        "scheduler",
    )

    def __init__(
        self, clock: Clock, index: int, scheduler: Scheduler, cost: StepCost, recorder: Recorder, config: ReplicaConfig
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
        self._entry_counts = config.async_scheduling and sees_entries(scheduler)
        self._last_start_ns = 0
        if scheduler.state.loading is not None:
            scheduler.state.loading.on_loaded = self._look_again
        self._step_end = Alarm(clock, 0, STEP_END, self._look)

    def _make_executor(self, cost: StepCost) -> Executor:
        return simulated_executor(self.scheduler, cost, self._config, self.index)

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

    def has(self, request: Request) -> bool:
        """Whether a request is open here."""
        return self.requests.by_number.get(request.number) is request

    def give_up(self, request: Request, reason: str | None) -> None:
        """Abort an open request, as its client gives up now, or (no ``reason``) as it goes on elsewhere; what it holds
        is freed when the step in progress ends."""
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
        elif self._interruptible and self._in_progress is not None:
            self._interruptible = False
            _, start_ns, result = self._in_progress
            now_ns = self._clock.now_ns
            if now_ns == start_ns or now_ns in step_ends_ns(start_ns, result.durations_ns):
                Alarm(self._clock, 0, STEP_END, self._interrupted)  # others may come in the same nanosecond
            else:
                self._interrupted()

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
            self.scheduler.allocate_next_step()

    def _look(self, _: Event | None = None) -> None:
        """Take steps from now on, until there is something to wait for."""
        clock = self._clock
        while clock.next_event_ns != clock.now_ns:
            if not self._take_step():
                return
        Alarm(clock, 0, PLAN, self._look_last)

    def _look_last(self, _: Event) -> None:
        """Go on once all else that happens in this nanosecond has happened."""
        if self._take_step():
            self._look()

    def _take_step(self) -> bool:
        """Plan and execute a step, or as many as the plan stands for; False if their end has to be waited for."""
        clock = self._clock
        start_ns = clock.now_ns
        if (ready_ns := self._executor.ready_ns) > start_ns:
            Alarm(clock, ready_ns - start_ns, PLAN, self._look)
            return False
        plan = self._plan(start_ns)
        if plan.empty:
            return self._idles(plan, start_ns)
        end_ns = start_ns + self._execute(plan, start_ns).elapsed_ns
        if end_ns < clock.next_event_ns:
            clock.skip_to(end_ns)
            self._commit(end_ns)
            return True
        self._wait_until(end_ns)
        return False

    def _idles(self, plan: BatchPlan, start_ns: int) -> bool:
        """Nobody runs by a plan: look again at once if that may change something, or sleep."""
        self.log.rows.idles(plan)
        if self.scheduler.state.incoming:
            self._receive(start_ns)
        elif not (plan.preempted or plan.dropped or plan.released):
            self._sleep(plan.retry_ns)
            return False
        return True

    def _wait_until(self, end_ns: int) -> None:
        """Let the steps in progress take their time."""
        self._step_end = Alarm(self._clock, end_ns - self._clock.now_ns, STEP_END, self._ended)

    def _ended(self, _: Event) -> None:
        """The steps in progress have ended."""
        self._commit(self._clock.now_ns)
        self._look()

    def _interrupted(self, _: Event | None = None) -> None:
        """Somebody came, or left, during a jump: it ends with the step in progress."""
        self._step_end.callbacks.clear()
        end_ns = self._cut_short()
        if end_ns > self._clock.now_ns:
            self._wait_until(end_ns)
        else:
            self._commit(end_ns)
            self._look()

    def _commit(self, end_ns: int) -> None:
        """Note that the steps in progress, if any are left, have ended."""
        self._interruptible = False
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
        for request in plan.completed:
            requests.finish(request, start_ns)
        return plan

    def _execute(self, plan: BatchPlan, start_ns: int) -> StepResult:
        """Have a plan priced, as far as nothing that is known comes between its steps."""
        state, config = self.scheduler.state, self._config
        self.log.rows.begin(plan, start_ns, state)
        disturbed = plan.admits_arrivals or config.clients_give_up or self._entry_counts
        within_ns = self._clock.next_event_ns - start_ns if config.alone and disturbed else FOREVER
        if plan.retry_ns is not None:
            within_ns = min(within_ns, max(plan.retry_ns - start_ns, 1))
        if state.incoming or (self.scheduler.arriving is not None and self.scheduler.arriving.unseen):
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

    def _sleep(self, retry_ns: int | None) -> None:
        """Wait for an arrival, or the time at which the policies want to be asked again."""
        self._idle = idle = Event(self._clock)
        idle.callbacks.append(self._look)
        if retry_ns is not None:
            Alarm(self._clock, max(retry_ns - self._clock.now_ns, 1), PLAN, lambda _: self._wake(idle))

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
            check_invariants(scheduler.state, scheduler.held_elsewhere)
