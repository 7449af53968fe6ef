"""A replica that can stop at once."""

from simpy import Event

from simcore.core.request import UNSET, Request
from simcore.cost.step_cost import StepCost
from simcore.recording.recorder import Recorder
from simcore.scheduling.scheduler import Scheduler
from simcore.service.clock import Clock
from simcore.service.replica import Replica
from simcore.service.replica_config import ReplicaConfig


class MortalReplica(Replica):
    """Runs as any other until it dies; then nothing of it is used again."""

    __slots__ = ("_dead",)

    def __init__(
        self, clock: Clock, index: int, scheduler: Scheduler, cost: StepCost, recorder: Recorder, config: ReplicaConfig
    ) -> None:
        self._dead = False
        super().__init__(clock, index, scheduler, cost, recorder, config)

    def die(self) -> list[tuple[Request, int]]:
        """Stop, whatever step is in progress; returns the open requests, each with the length of its output.

        They keep the tokens that they have got, and nothing else: as if preempted, they can be computed elsewhere.
        """
        self.catch_up()
        self._dead, self._idle, self._in_progress = True, None, None
        running = self.scheduler.state.running
        lost = []
        for number, request in self.requests.by_number.items():
            request.known_output_tokens = request.generated_tokens
            if number in running:
                self.log.gaps.preempted(request)
                request.preemptions += 1
            request.pool = None
            request.computed_tokens = request.unknown_tokens = 0
            request.ticket = UNSET
            lost.append((request, self._executor.ends.forget(request)))
        self.requests.by_number.clear()
        self.log.rows.close()
        return lost

    def close(self, end_ns: int) -> None:
        """See ``Replica``; who is dead has handed over what it had."""
        if not self._dead:
            super().close(end_ns)

    def _take_step(self) -> bool:
        return False if self._dead else super()._take_step()

    def _ended(self, event: Event) -> None:
        if not self._dead:
            super()._ended(event)

    def _interrupted(self, event: Event) -> None:
        if not self._dead:
            super()._interrupted(event)
