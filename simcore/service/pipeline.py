"""A replica over pipeline stages: several batches at once, each in another stage."""

from collections.abc import Sequence

from simcore.core.batch_plan import BatchPlan
from simcore.core.request import Request
from simcore.core.token_gaps import StepDurations
from simcore.cost.pipeline import PipelineCost
from simcore.cost.step_cost import StepCost
from simcore.recording.recorder import Recorder
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.step import StepResult
from simcore.service.clock import Clock
from simcore.service.executor import SimulatedExecutor
from simcore.service.replica import Replica
from simcore.service.replica_config import ReplicaConfig


class Pipeline:
    """The stages of one replica, which batches pass in the order in which they enter.

    ``computed_ns`` and ``sent_ns`` are what all stages together did so far. Between the first batch's entry and the
    last one's end, a stage that did neither had nothing to do: a bubble.
    """

    def __init__(self, cost: PipelineCost) -> None:
        self.cost = cost
        self.batches: list[InFlightBatch] = []
        self.computed_ns = 0
        self.sent_ns = 0
        self.occupied_ns = 0
        self._free_ns = [0] * len(cost.stages)

    @property
    def entry_ns(self) -> int:
        """When the first stage is free."""
        return self._free_ns[0]

    def enter(self, now_ns: int, computing_ns: Sequence[int], sending_ns: Sequence[int]) -> int:
        """Let a batch pass all stages; returns when it leaves the last."""
        last_end_ns, at_ns = self._free_ns[-1], now_ns
        for stage, (computes_ns, sends_ns) in enumerate(zip(computing_ns, sending_ns, strict=True)):
            at_ns = max(at_ns, self._free_ns[stage]) + computes_ns + sends_ns
            self._free_ns[stage] = at_ns
        self.computed_ns += sum(computing_ns)
        self.sent_ns += sum(sending_ns)
        self.occupied_ns += at_ns - max(now_ns, last_end_ns)
        return at_ns

    @property
    def bubble_share(self) -> float:
        """Share of the stages' time in which they waited, while some batch was under way; 0 before any was."""
        if not self.occupied_ns:
            return 0.0
        return 1 - (self.computed_ns + self.sent_ns) / (self.occupied_ns * len(self._free_ns))

    def wake(self) -> None:
        """Let every batch that has nothing to do look again, in order."""
        for batch in self.batches:
            batch.look_again()


class StagedExecutor(SimulatedExecutor):
    """Executes each step in one stage after the other, when those that entered before have left it."""

    __slots__ = ("_stages",)

    def __init__(self, scheduler: Scheduler, cost: StepCost, stages: Pipeline) -> None:
        super().__init__(scheduler, cost, fast_forward=False)
        self._stages = stages

    @property
    def ready_ns(self) -> int:
        """When the first stage is free."""
        return self._stages.entry_ns

    def _mixed_ns(self, plan: BatchPlan, start_ns: int, sampled_rows: int) -> StepDurations:
        cost = self._stages.cost
        computing_ns = cost.computing_ns(plan, self._scheduler.state.pool, sampled_rows)
        chunks = [(tokens, computed) for _, tokens, computed in plan.chunks]
        sending_ns = cost.sending_ns(cost.sent_tokens(chunks, plan.decoding))
        return [self._stages.enter(start_ns, computing_ns, sending_ns) - start_ns]

    def _decodes_ns(self, plan: BatchPlan, start_ns: int, within_ns: int) -> StepDurations:
        return self._mixed_ns(plan, start_ns, plan.decoding)


class InFlightBatch(Replica):
    """One of the batches of a pipeline: requests stay in the batch that admits them until they end or give way.

    As in vLLM V1 there are as many as stages, a request is in one batch in flight at most, and all share the queue, the
    slots and the KV memory; victims of preemption are found among the requests of the batch itself. A batch is planned
    when the first stage is free. The first batch of a pipeline stands for the replica.
    """

    def __init__(
        self,
        clock: Clock,
        index: int,
        scheduler: Scheduler,
        cost: StepCost,
        recorder: Recorder,
        config: ReplicaConfig,
        stages: Pipeline,
    ) -> None:
        self._stages = stages
        stages.batches.append(self)
        super().__init__(clock, index, scheduler, cost, recorder, config)
        first = stages.batches[0]
        if first is not self:
            self.requests.share(first.requests)

    def _make_executor(self, cost: StepCost) -> SimulatedExecutor:
        return StagedExecutor(self.scheduler, cost, self._stages)

    def look_again(self) -> None:
        """Plan anew if there is nothing to do."""
        super()._look_again()

    def give_up(self, request: Request, reason: str | None) -> None:
        """See ``Replica``; the batch that has the request aborts it, at once if it only waits."""
        holders = [batch for batch in self._stages.batches if request.number in batch.scheduler.state.running]
        if holders:
            Replica.give_up(holders[0], request, reason)
        else:  # others there may be in a step that is not done
            self.requests.give_up(request, reason)
            self.scheduler.drop(request)
            self.requests.forget(request)
            self._look_again()

    def _look_again(self) -> None:
        self._stages.wake()

    def _end(self, plan: BatchPlan, start_ns: int, result: StepResult, now_ns: int) -> None:
        super()._end(plan, start_ns, result, now_ns)
        if self.scheduler.state.waiting.size:
            self._stages.wake()
