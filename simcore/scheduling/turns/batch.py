"""Who runs where prompts and decodes take turns, and what they hold."""

from simcore.core.request import UNSET, ReadOnlyRequest
from simcore.memory.radix_counter import KVRadixCounter
from simcore.scheduling.state import SchedulerState
from simcore.scheduling.turns.queue import TurnQueue
from simcore.scheduling.turns.seat import Seat
from simcore.scheduling.turns.turn import Turn

_HEADROOM_STEPS = 20
"""Decode steps for which memory is made free for those left when one gives way."""


class TurnBatch:
    """``seats`` decode, and ``cut`` has an unfinished prompt.

    ``full`` says that nobody is considered until somebody leaves. ``turn`` is what the step planned last does, None if
    nothing, ``prioritised`` who waited as admission began, ``retracted`` and ``displaced`` are who lost their memory by
    it, in the order in which they queued again, and ``dropped`` did not fit alone.
    """

    __slots__ = (
        "_rows",
        "cut",
        "displaced",
        "dropped",
        "full",
        "memory",
        "prioritised",
        "queue",
        "retracted",
        "seats",
        "slots",
        "state",
        "turn",
    )

    def __init__(self, state: SchedulerState, memory: KVRadixCounter, queue: TurnQueue, slots: int) -> None:
        self.state = state
        self.memory = memory
        self.queue = queue
        self.slots = slots
        self.seats: list[Seat] = []
        self.full = False
        self.cut: Seat | None = None
        self.turn: Turn | None = None
        self.prioritised: list[Seat] = []
        self.retracted: list[Seat] = []
        self.displaced: list[Seat] = []
        self.dropped: list[Seat] = []
        self._rows = 0

    @property
    def idle(self) -> bool:
        """Whether nobody is there."""
        return not (self.seats or self.queue.seats or self.cut)

    def merge(self) -> None:
        """Let those decode whose prompt the last step has finished, and forget who has ended."""
        self.prioritised, self.retracted, self.displaced, self.dropped = [], [], [], []
        cut, last = self.cut, self.turn
        if cut is not None and cut.end_tokens > cut.prefix_tokens:
            self.publish(cut)
        if last is not None and last.mode != "decode":
            seats = last.seats
            kept = [seat for seat in seats if not seat.finished and seat is not cut and seat is not last.cut]
            if len(kept) < len(seats) or (kept and not self.seats):
                self.full = False
            self.seats = self.seats + kept
        self.leave_out([seat for seat in self.seats if seat.finished])

    def leave_out(self, seats: list[Seat]) -> bool:
        """Let some run no more; returns whether there were any."""
        gone = set(map(id, seats))
        if gone:
            self.seats = [seat for seat in self.seats if id(seat) not in gone]
            self.full = False
        return bool(gone)

    def leave_out_ending(self) -> bool:
        """Let those run no more who are sure to get their last token by the step under way."""
        return self.leave_out([seat for seat in self.seats if seat.lag_tokens and seat.ends_by_length])

    def slots_left(self, held_rows: int = 0) -> int:
        """Requests that may be let in, those that are in this step's batch but for ``held_rows`` among them."""
        return min(self.slots - len(self.seats), self.slots - self._rows + held_rows)

    def take_row(self, seat: Seat) -> None:
        """Count a request among those that hold a slot."""
        self._rows += not seat.holds_row
        seat.holds_row, seat.retracted = True, False

    def room_to_decode(self, seats: list[Seat]) -> bool:
        """Whether memory has room for one more token of each."""
        return self.memory.make_blank(self._blocks_to_decode(seats))

    def grow_by_one(self, seats: list[Seat]) -> None:
        """Give one more token to each, and for a moment a block."""
        memory, ending = self.memory, self.state.ending
        memory.headroom_blocks = len(seats)
        memory.allocate(self._blocks_to_decode(seats))
        memory.headroom_blocks = self.state.pool.size
        for seat in seats if ending else ():
            seat.surplus_tokens = int(seat.number in ending)

    def publish(self, seat: Seat) -> None:
        """Enter what a step of prompts has computed of a request into the tree."""
        self.memory.publish(seat.request, seat.end_tokens)
        seat.prefix_tokens = seat.end_tokens

    def give_back(self, seat: Seat, left: int) -> None:
        """Take a request's memory, for which it comes back, and make some free for those left.

        A token under way is lost, so that its client has not got it.
        """
        request = seat.request
        self.state.ending.pop(request.number, None)
        self.state.take_memory(request, 0)
        self.memory.make_blank(self.memory.blocks_for(left * _HEADROOM_STEPS))
        request.computed_tokens = 0
        request.known_output_tokens -= seat.lag_tokens
        if not request.known_output_tokens:
            request.first_token_ns = UNSET
        seat.lag_tokens = seat.prefix_tokens = seat.end_tokens = 0
        seat.retracted = True
        self._give_row(seat)

    def queue_again(self, seats: list[Seat]) -> None:
        """Put those back into the queue that gave way."""
        batching = self.state.config.batching
        for seat in seats:
            if batching.hears_ended:
                batching.ended(ReadOnlyRequest(seat.request))
            self.queue.push(seat.request, self.state.now_s)

    def leave(self, seat: Seat) -> None:
        """Forget a request that is gone for good."""
        del self.queue.by_number[seat.number]
        seat.finished = True
        self._give_row(seat)

    def drop(self, seat: Seat) -> None:
        """Forget a request that is dropped between two steps."""
        self.leave(seat)
        self.leave_out([seat])
        if self.cut is seat:
            self.cut = None

    def _give_row(self, seat: Seat) -> None:
        self._rows -= seat.holds_row
        seat.holds_row = False

    def _blocks_to_decode(self, seats: list[Seat]) -> int:
        size = self.memory.block_size_tokens
        return len(seats) if size == 1 else sum(seat.tokens_in_memory % size == 0 for seat in seats)
