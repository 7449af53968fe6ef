"""Steps of prompts and steps of decodes in turns, as SGLang's scheduler takes them."""

from dataclasses import dataclass, field

from policies.commitment import Commitment
from policies.preemption.fewest_generated import FewestGenerated
from simcore.memory.page_memory import PageMemory
from simcore.scheduling.turns.budget import PrefillBudget, Verdict
from simcore.scheduling.turns.displacement import displace
from simcore.scheduling.turns.queue import TurnQueue
from simcore.scheduling.turns.seat import Seat
from simcore.scheduling.turns.turn import Turn, TurnLimits

_HEADROOM_STEPS = 20
"""Decode steps for which memory is made free for those left when one is retracted."""


@dataclass(slots=True)
class TurnScheduler:
    """Prompts go first: a step is one of prompts if any may be let in, else one of decodes.

    ``full`` says that nobody need be considered until somebody leaves. ``retracted`` and ``displaced`` are who lost
    their memory in the step planned last, in the order in which they went back to the queue; ``dropped`` did not fit
    alone.
    """

    limits: TurnLimits
    memory: PageMemory
    queue: TurnQueue
    commitment: Commitment
    retraction: FewestGenerated
    running: list[Seat] = field(default_factory=list)
    full: bool = False
    cut: Seat | None = None
    prioritised: list[Seat] = field(default_factory=list)
    retracted: list[Seat] = field(default_factory=list)
    displaced: list[Seat] = field(default_factory=list)
    dropped: list[Seat] = field(default_factory=list)
    _last: Turn | None = None
    _rows: int = 0

    def submit(self, seat: Seat) -> None:
        """Let a request wait."""
        self.queue.push(seat)

    @property
    def idle(self) -> bool:
        """Whether nobody is there."""
        return not (self.running or self.queue.seats or self.cut)

    def plan(self) -> Turn | None:
        """The next step, None if there is nothing to do; its memory is allocated."""
        self.prioritised, self.retracted, self.displaced, self.dropped = [], [], [], []
        self._merge()
        turn = self._prefill()
        if turn is None and self.running:
            turn = self._decode()
        self._last = turn
        return turn

    def commit(self, turn: Turn, last_tokens: set[int]) -> list[Seat]:
        """Take note of a step's result, in which requests of these numbers got their last token; returns who ended."""
        ended = []
        decoding = set(map(id, turn.decoding))
        for seat in turn.seats:
            if seat.finished or seat.retracted or seat is turn.cut:
                continue
            seat.generated_tokens += 1
            if seat.number in last_tokens:
                self._end(seat)
                ended.append(seat)
            elif id(seat) not in decoding:
                self._publish(seat)
        return ended

    def _merge(self) -> None:
        """Let those decode whose prompt the last step has finished, and forget who has ended."""
        left_out = {id(self.cut)}
        if self.cut is not None and self.cut.end_tokens > self.cut.prefix_tokens:
            self._publish(self.cut)
        last = self._last
        if last is not None and last.mode != "decode":
            left_out.add(id(last.cut))
            kept = [seat for seat in last.seats if not seat.finished and id(seat) not in left_out]
            if len(kept) < len(last.seats):
                self.full = False
            if kept and not self.running:
                self.full = False
            self.running += kept
        self._leave_out([seat for seat in self.running if seat.finished])

    def _prefill(self) -> Turn | None:
        limits, queue = self.limits, self.queue
        displaces = limits.displaces_beyond is not None
        if displaces or not self.running:
            self.full = False
        if self.cut is None:
            if self.full or not queue.seats:
                return None
            if self._slots_left() <= 0 and not displaces:
                self.full = True
                return None
        queue.prioritise()
        self.prioritised = list(queue.seats)
        budget = PrefillBudget(
            self.memory,
            self.commitment,
            limits.input_tokens,
            limits.chunk_tokens,
            self.running,
            len(self.running) if limits.mixed else 0,
        )
        if self.cut is not None:
            self.cut.consider()
            if not budget.go_on_with(self.cut):
                self.cut = None
        self._let_in(budget)
        admitted = [seat for seat in budget.batch if not seat.holds_row]
        if budget.batch:
            let_in = set(map(id, admitted))
            queue.seats = [seat for seat in queue.seats if id(seat) not in let_in]
        for seat in self.displaced:
            queue.push(seat)
        if not budget.batch:
            return None
        self.cut = budget.cut or self.cut
        return self._extend(budget.batch, admitted)

    def _let_in(self, budget: PrefillBudget) -> None:
        for seat in list(self.queue.seats):
            if budget.verdict is Verdict.SPENT:
                return
            if len(budget.batch) >= self._slots_left(sum(other.holds_row for other in budget.batch)):
                self.full = True
            if self.full and not self._displace_for(seat, budget):
                return
            seat.consider()
            seat.prefix_tokens = self.memory.look_up(seat.holding, seat.known_tokens - 1)
            verdict = budget.add(seat)
            if verdict is Verdict.NO_MEMORY:
                self.full = bool(budget.batch or self.running)
            if verdict is not Verdict.GO_ON:
                return

    def _displace_for(self, seat: Seat, budget: PrefillBudget) -> bool:
        if self.limits.displaces_beyond is None:
            return False
        displaced = displace(seat, self.running, budget, self.limits.displaces_beyond)
        for left, other in enumerate(displaced, start=1):
            self._give_back(other, len(self.running) - left)
        chosen = set(map(id, displaced))
        self.running[:] = [other for other in self.running if id(other) not in chosen]
        self.displaced += displaced
        return bool(displaced)

    def _extend(self, batch: list[Seat], admitted: list[Seat]) -> Turn:
        new_tokens = [seat.end_tokens - seat.prefix_tokens for seat in batch]
        page = self.memory.page_tokens
        self.memory.make_free(sum(new_tokens) + (len(batch) * page if page > 1 else 0))
        for seat, tokens in zip(batch, new_tokens, strict=True):
            self._rows += not seat.holds_row
            seat.holds_row, seat.retracted = True, False
            self.memory.grow(seat.holding, tokens)
        turn = Turn("extend", batch, new_tokens, [seat.prefix_tokens for seat in batch], admitted, cut=self.cut)
        if self.limits.mixed and self.running:
            self._mix(turn)
        return turn

    def _mix(self, turn: Turn) -> None:
        """Let those who run decode in a step of prompts, if memory has room for all of them."""
        if self._leave_out(self._ending()):
            self.full = False
        if not self.running or not self._room_to_decode(self.running):
            return
        for seat in self.running:
            seat.consider()
            seat.end_tokens = seat.holding.committed_tokens + 1
        turn.mode, turn.decoding = "mixed", list(self.running)
        turn.prefixes += [seat.holding.committed_tokens for seat in self.running]
        turn.new_tokens += [1] * len(self.running)
        turn.seats = [*turn.seats, *self.running]
        self._grow_by_one(self.running)
        self.running = []

    def _decode(self) -> Turn | None:
        before = len(self.running)
        ending = self._leave_out(self._ending())
        if not self.running:
            self.full = False
            return None
        if self._room_to_decode(self.running):
            self.commitment.decoded()
        elif ending:
            self.full = False  # their memory will be free in the next step
            return None
        else:
            self._retract()
        if len(self.running) < before:
            self.full = False
        if not self.running:
            return None
        self._grow_by_one(self.running)
        seats = list(self.running)
        prefixes = [seat.holding.committed_tokens - 1 for seat in seats]
        return Turn("decode", seats, [1] * len(seats), prefixes, decoding=seats)

    def _retract(self) -> None:
        """Take memory from some, at least from one if there are two, until the others can decode."""
        kept = self.retraction.keep_first(self.running)
        seats = {seat.number: seat for seat in self.running}
        left = [seats[view.number] for view in kept]
        while len(left) > 1 and (not self.retracted or not self._room_to_decode(left)):
            seat = left.pop()
            self._give_back(seat, len(left))
            self.retracted.append(seat)
        if len(left) == 1 and not self._room_to_decode(left):
            seat = left.pop()
            self._give_back(seat, 0)
            self.dropped.append(seat)
        self.running = left
        self.commitment.retracted(left)
        for seat in self.retracted:
            self.queue.push(seat)

    def _ending(self) -> list[Seat]:
        """Who runs and is sure to get its last token by the step under way."""
        if not self.limits.ends_late or self._last is None:
            return []
        under_way = set(map(id, self._last.seats))
        return [seat for seat in self.running if id(seat) in under_way and seat.ends_by_length]

    def _leave_out(self, seats: list[Seat]) -> bool:
        """Let some run no more; returns whether there were any."""
        gone = set(map(id, seats))
        if gone:
            self.running = [seat for seat in self.running if id(seat) not in gone]
            self.full = False
        return bool(gone)

    def _slots_left(self, held_rows: int = 0) -> int:
        return min(self.limits.slots - len(self.running), self.limits.slots - self._rows + held_rows)

    def _room_to_decode(self, seats: list[Seat]) -> bool:
        return self.memory.make_free(self.memory.tokens_to_decode([seat.holding for seat in seats]))

    def _grow_by_one(self, seats: list[Seat]) -> None:
        self.memory.make_free(len(seats) * self.memory.page_tokens)
        for seat in seats:
            self.memory.grow(seat.holding, 1)

    def _publish(self, seat: Seat) -> None:
        self.memory.publish(seat.holding, seat.end_tokens)
        seat.prefix_tokens = seat.end_tokens

    def _end(self, seat: Seat) -> None:
        seat.finished = True
        seat.consider()
        self.memory.publish(seat.holding, min(seat.holding.committed_tokens, seat.text_tokens))
        self._free(seat)

    def _give_back(self, seat: Seat, left: int) -> None:
        """Take a request's memory, for which it comes back, and make some free for those left."""
        self._free(seat)
        self.memory.make_free(left * _HEADROOM_STEPS)
        seat.prefix_tokens = seat.end_tokens = 0
        seat.retracted = True
        seat.request.preemptions += 1

    def _free(self, seat: Seat) -> None:
        self.memory.release(seat.holding)
        self._rows -= 1
        seat.holds_row = False
