"""A replica that can stop at once, lose its requests, and tell of first tokens."""

from collections.abc import Callable
from copy import copy
from functools import partial

from simpy import Event

from simcore.core.batch_plan import BatchPlan
from simcore.core.request import UNSET, Request
from simcore.cost.step_cost import StepCost
from simcore.recording.recorder import Recorder
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.step import StepResult
from simcore.service.clock import STEP_END, Alarm, Clock
from simcore.service.output_ends import OutputEnds
from simcore.service.replica import Replica
from simcore.service.replica_config import ReplicaConfig


class MortalReplica(Replica):
    """Runs as any other until it dies; then nothing of it is used again.

    It dies in the step that computes a request, by number, that it does not bear: at its end, before anything of it
    counts.
    """

    __slots__ = ("awaited", "bears", "is_dead", "on_answer", "on_poisoned")

    def __init__(
        self, clock: Clock, index: int, scheduler: Scheduler, cost: StepCost, recorder: Recorder, config: ReplicaConfig
    ) -> None:
        self.is_dead = False
        self.awaited: dict[int, Request] = {}
        """Requests of which ``on_answer`` is told when they have their first token."""
        self.on_answer: Callable[[Request], None] = lambda request: None
        self.bears: Callable[[int], bool] | None = None
        self.on_poisoned: Callable[[int], None] = lambda number: None
        super().__init__(clock, index, scheduler, cost, recorder, config)

    def die(self) -> list[tuple[Request, int]]:
        """Stop, whatever step is in progress; returns the open requests, each with the length of its output.

        They keep the tokens that they have got, and nothing else: as if preempted, they can be computed elsewhere.
        """
        self.catch_up()
        self.is_dead, self._idle, self._in_progress = True, None, None
        lost = []
        for request in self.requests.by_number.values():
            self._lose(request)
            _begin_again(request)
            lost.append((request, self._executor.ends.forget(request)))
        self.requests.by_number.clear()
        self.awaited.clear()
        self.log.rows.close()
        return lost

    def disconnect(self) -> list[tuple[Request, int]]:
        """Abort all open requests; returns a copy of each, with the length of its output, as ``die`` does."""
        self.catch_up()
        ends, lost = self._executor.ends, []
        assert isinstance(ends, OutputEnds)
        for request in list(self.requests.by_number.values()):
            self._lose(request)
            again = copy(request)
            _begin_again(again)
            request.lost_token_ns = UNSET
            lost.append((again, ends.output_tokens_of(request)))
            self.give_up(request, None)
        self.awaited.clear()
        return lost

    def take_back(self, request: Request) -> int:
        """Abort an open request without a word; returns the length of its output."""
        self.catch_up()
        ends = self._executor.ends
        assert isinstance(ends, OutputEnds)
        output_tokens = ends.output_tokens_of(request)
        self.awaited.pop(request.number, None)
        self.give_up(request, None)
        return output_tokens

    def is_leaving(self, request: Request) -> bool:
        """Whether a request that was taken from here is still to be freed, at the end of the step in progress."""
        return not self.is_dead and request.number in self.scheduler.cancelled

    def close(self, end_ns: int) -> None:
        """See ``Replica``; who is dead has handed over what it had."""
        if not self.is_dead:
            super().close(end_ns)

    def _lose(self, request: Request) -> None:
        """Note when a request got its last token here."""
        request.known_output_tokens = request.generated_tokens
        if request.number in self.scheduler.state.running:
            self.log.gaps.preempted(request)
            request.preemptions += 1

    def _execute(self, plan: BatchPlan, start_ns: int) -> StepResult:
        result = super()._execute(plan, start_ns)
        if self.bears is not None:
            unbearable = next(
                (chunk.request.number for chunk in plan.chunks if not self.bears(chunk.request.number)), None
            )
            if unbearable is not None:
                succumb = partial(self._succumb, unbearable)
                Alarm(self._clock, result.elapsed_ns, STEP_END).callbacks.append(succumb)
        return result

    def _end(self, plan: BatchPlan, start_ns: int, result: StepResult, now_ns: int) -> None:
        super()._end(plan, start_ns, result, now_ns)
        if self.awaited:
            for request in [each for each in self.awaited.values() if each.first_token_ns != UNSET]:
                del self.awaited[request.number]
                self.on_answer(request)

    def _succumb(self, number: int, _: Event) -> None:
        if not self.is_dead:
            self.on_poisoned(number)

    def _take_step(self) -> bool:
        return False if self.is_dead else super()._take_step()

    def _ended(self, event: Event) -> None:
        if not self.is_dead:
            super()._ended(event)

    def _interrupted(self, event: Event | None = None) -> None:
        if not self.is_dead:
            super()._interrupted(event)


def _begin_again(request: Request) -> None:
    """Let a request that had to leave be computed anew, with the tokens that it has got."""
    request.pool = None
    request.computed_tokens = request.unknown_tokens = 0
    request.ticket = UNSET
