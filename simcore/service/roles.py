"""Replicas that compute prompts for others, those that decode what others have computed, and those that do both."""

from collections.abc import Callable
from functools import partial

from simcore.core.batch_plan import BatchPlan
from simcore.core.request import Request
from simcore.cost.step_cost import StepCost
from simcore.recording.recorder import Recorder
from simcore.scheduling.arriving import Arriving
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.step import StepResult
from simcore.service.clock import Clock
from simcore.service.replica import Replica
from simcore.service.replica_config import ReplicaConfig


class PrefillReplica(Replica):
    """Computes prompts and their first tokens, and keeps their KV until it is let go.

    ``on_prefilling`` is told of each request whose prompt the step that begins now completes.
    """

    __slots__ = ("on_prefilling",)

    def __init__(
        self, clock: Clock, index: int, scheduler: Scheduler, cost: StepCost, recorder: Recorder, config: ReplicaConfig
    ) -> None:
        super().__init__(clock, index, scheduler, cost, recorder, config)
        scheduler.held = {}
        self.on_prefilling: Callable[[Request], None] | None = None

    def let_go(self, request: Request) -> None:
        """Free the KV of a request that is complete here."""
        self.scheduler.let_go(request)
        self._look_again()

    def _execute(self, plan: BatchPlan, start_ns: int) -> StepResult:
        result = super()._execute(plan, start_ns)
        if self.on_prefilling is not None:
            for request in result.ended:
                self.on_prefilling(request)
        return result


class DecodeReplica(Replica):
    """Decodes requests whose prompts others have computed."""

    __slots__ = ("_arriving",)

    def __init__(
        self, clock: Clock, index: int, scheduler: Scheduler, cost: StepCost, recorder: Recorder, config: ReplicaConfig
    ) -> None:
        super().__init__(clock, index, scheduler, cost, recorder, config)
        self._arriving = scheduler.arriving = Arriving(scheduler.state)

    def ask_for_room(self, request: Request, tokens: int, on_room: Callable[[], None]) -> None:
        """Have blocks set aside for so many tokens of a request; ``on_room`` is called when they are."""
        self._arriving.ask_for_room(request, tokens, self._clock.now_ns, on_room)
        self._look_again()

    def land(self, request: Request, output_tokens: int) -> None:
        """Take in a request whose KV is here."""
        self.requests.accept(request, output_tokens)
        self._arriving.landed(request, self._clock.now_ns)
        self._look_again()

    def withdraw(self, request: Request) -> None:
        """Free what is set aside for a request that will not come."""
        self._arriving.withdraw(request, self._clock.now_ns)
        self._look_again()

    def _plan(self, start_ns: int) -> BatchPlan:
        arriving, running = self._arriving, self.scheduler.state.running
        ahead = self._config.async_scheduling and len(running) > 0
        arriving.see(self._last_start_ns if ahead else start_ns)
        plan = super()._plan(start_ns)
        if plan.empty and arriving.unseen:
            arriving.see(start_ns)
            plan = super()._plan(start_ns)
        return plan

    def _execute(self, plan: BatchPlan, start_ns: int) -> StepResult:
        result = super()._execute(plan, start_ns)
        self._interruptible = len(result.durations_ns) > 1
        return result


class MigratingReplica(DecodeReplica):
    """Does all of a request, and can let one that decodes go on elsewhere."""

    __slots__ = ()

    def stop(self, request: Request, on_stopped: Callable[[int | None], None]) -> None:
        """Take a request out of the batch between two steps; ``on_stopped`` is told how long its output will be.

        It is told None where the request does not decode here any more.
        """
        self._arriving.then(self._clock.now_ns, partial(self._leave, request, on_stopped))
        self._look_again()

    def decodes(self, request: Request) -> bool:
        """Whether a request decodes here, as of now."""
        self.catch_up()
        state = self.scheduler.state
        return self.has(request) and request.pool is state.pool and state.goes_on(request)

    def _leave(self, request: Request, on_stopped: Callable[[int | None], None]) -> None:
        if not self.decodes(request):
            on_stopped(None)
            return
        self.log.gaps.preempted(request)
        self.scheduler.drop(request)
        on_stopped(self.requests.leave(request))
