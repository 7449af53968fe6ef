"""Steps of prompts and steps of decodes in turns, as SGLang's scheduler takes them."""

from collections.abc import Iterator, Sequence

from policies.batching import Turns
from policies.horizon import FOREVER
from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import to_s
from simcore.core.request import UNSET, ReadOnlyRequest, Request
from simcore.memory.radix_counter import KVRadixCounter
from simcore.scheduling.config import SchedulerConfig
from simcore.scheduling.scheduler import Scheduler
from simcore.scheduling.step import Committed, StepResult
from simcore.scheduling.turns.batch import TurnBatch
from simcore.scheduling.turns.decodes import plan_decodes
from simcore.scheduling.turns.prompts import plan_prompts
from simcore.scheduling.turns.queue import TurnQueue
from simcore.scheduling.turns.seat import Seat
from simcore.scheduling.turns.turn import Turn
from simcore.scheduling.view import StepPrice


class TurnScheduler(Scheduler):
    """Fills steps in another way: one is of prompts if any may be let in, else of decodes.

    Where ends are known late, a step is planned before the result of the one before it: a result changes memory and
    order only when the next step is planned, and only then is it told who is complete. Who has ended unforeseen is in
    one step more, which is not priced; a token that was under way when its request gave way is made again.
    """

    __slots__ = ("_idle", "_pending", "_turns", "batch")

    def __init__(
        self, config: SchedulerConfig, memory: KVRadixCounter, turns: Turns, step_price: StepPrice | None = None
    ) -> None:
        super().__init__(config, memory, step_price=step_price)
        queue = TurnQueue(config.ordering, memory)
        self.state.waiting = queue
        self.batch = TurnBatch(self.state, memory, queue, turns.slots)
        self._turns = turns
        self._pending: Turn | None = None
        self._idle = False

    def plan(self, now_ns: int) -> BatchPlan:
        """The next step; its memory is allocated, and who gives way is back in the queue."""
        if self.cancelled:
            self.drop_cancelled()
        state, batch, turns = self.state, self.batch, self._turns
        state.now_s = to_s(now_ns)
        if self._idle:
            turns.commitment.idle()
        batch.merge()
        turn = plan_prompts(batch, turns)
        if turn is None and batch.seats:
            turn = plan_decodes(batch, turns.commitment)
        plan = self._as_plan(turn, now_ns)
        plan.admits_arrivals = turns.displaces_beyond is not None or not (batch.full or batch.slots_left() <= 0)
        changes = plan.chunks or plan.preempted or plan.dropped or state.ending
        if plan.decoding and not changes and not (batch.queue.seats and plan.admits_arrivals):
            plan.stable_steps = FOREVER
        pending, self._pending = self._pending, None
        if pending is not None:
            plan.released = plan.completed = self._note(pending, now_ns)
        self._idle = turn is None and pending is None and batch.idle
        batch.turn, state.last_plan = turn, plan
        return plan

    def commit(self, plan: BatchPlan, result: StepResult, now_ns: int) -> Committed:
        """Note what came of a plan, whose steps have ended by now: progress, and who is complete."""
        state, turn, steps = self.state, self.batch.turn, len(result.durations_ns)
        if plan.decoding:
            if steps > 1:
                self._follow_jump(steps)
            state.commit_decodes(plan, steps)
        used_blocks = self.memory.total_blocks - self.memory.free_blocks
        prefilled: Sequence[Request] = state.commit_chunks(plan) if plan.chunks else ()
        for request in prefilled:
            request.known_output_tokens += 1
            if request.first_token_ns == UNSET:
                request.first_token_ns = now_ns
        ended = result.ended
        if turn is not None:
            turn.ended = {request.number: request for request in ended}
            if len(ended) > 1:
                ended = [seat.request for seat in turn.seats if seat.number in turn.ended]
            if self.config.ends_late:
                for seat in turn.prompts:
                    seat.lag_tokens = int(not seat.finished and seat is not turn.cut)
                for seat in turn.decoding:
                    seat.lag_tokens = 0 if seat.finished else 1
                for request in ended:
                    state.finish(request)
                self._pending, ended = turn, ()
            else:
                self._note(turn, now_ns)
        decoding = [request for request in prefilled if state.goes_on(request)]
        for request in decoding:
            state.start_decoding(request)
        return Committed(ended, prefilled, decoding, used_blocks)

    def drop(self, request: Request) -> None:
        """Forget a request at once, between two steps."""
        self.state.ending.pop(request.number, None)
        super().drop(request)
        seat = self.batch.queue.by_number.get(request.number)
        if seat is not None:
            self.batch.drop(seat)

    def allocate_next_step(self) -> None:
        """See ``Scheduler``."""
        super().allocate_next_step()
        self._turns.commitment.decoded(1)

    def scheduled(self, plan: BatchPlan) -> Iterator[tuple[Request, int]]:
        """Each request of the plan just made with its new tokens, in batch order."""
        turn = self.batch.turn
        if turn is not None:
            for seat, tokens in zip(turn.prompts, turn.new_tokens, strict=True):
                yield seat.request, tokens
            for seat in turn.decoding:
                yield seat.request, 1

    def _follow_jump(self, steps: int) -> None:
        """Do what planning all steps but the first would have done; memory is taken afterwards."""
        pool = self.state.pool
        blocks, last = pool.blocks_needed(steps - 1, after=1), pool.blocks_needed(1, after=steps - 1)
        self.batch.memory.make_blank(blocks - last + pool.size)
        self._turns.commitment.decoded(steps - 1)

    def _as_plan(self, turn: Turn | None, now_ns: int) -> BatchPlan:
        """What a step comes to for those who execute it."""
        plan, state, ordering = BatchPlan(), self.state, self.config.ordering
        plan.preempted = [seat.request for seat in (*self.batch.displaced, *self.batch.retracted)]
        plan.dropped = [seat.request for seat in self.batch.dropped]
        if turn is None:
            return plan
        plan.decoding = state.pool.size if turn.decoding else 0
        admitted = set(map(id, turn.admitted))
        for seat, tokens in zip(turn.prompts, turn.new_tokens, strict=True):
            request = seat.request
            if id(seat) not in admitted:
                plan.add_chunk(request, tokens)
                continue
            if request.first_scheduled_ns == UNSET and not request.preemptions:
                request.cached_tokens = seat.prefix_tokens
            if ordering.hears_admitted:
                ordering.admitted(ReadOnlyRequest(request), state.now_s)
            state.start(request, tokens, plan, now_ns)
        return plan

    def _note(self, turn: Turn, now_ns: int) -> list[Request]:
        """Give back what those held who ended with a step, and enter the prompts that it finished into the tree."""
        released = []
        for seat in turn.prompts:
            seat.lag_tokens = 0
            if seat.finished or seat.retracted or seat is turn.cut:
                continue
            if seat.number in turn.ended:
                self._end(seat, now_ns)
                released.append(seat.request)
            else:
                self.batch.publish(seat)
        for seat in turn.decoding if self.config.ends_late else ():
            seat.lag_tokens = 0
        for seat in turn.decoding if turn.ended else ():
            if not (seat.finished or seat.retracted) and seat.number in turn.ended:
                self._end(seat, now_ns)
                released.append(seat.request)
        return released

    def _end(self, seat: Seat, now_ns: int) -> None:
        request = seat.request
        if self.config.ends_late:
            request.computed_tokens += seat.surplus_tokens
            seat.surplus_tokens = 0
            self.state.release_ended(request)
            self._learn(request, now_ns)
        else:
            self._finish(request, now_ns)
        self.batch.leave(seat)
