"""Steps of prompts: who is let in, in place of whom, and how many tokens of each are computed."""

from policies.batching import Turns
from simcore.scheduling.turns.batch import TurnBatch
from simcore.scheduling.turns.budget import PrefillBudget, Verdict
from simcore.scheduling.turns.displacement import displace
from simcore.scheduling.turns.seat import Seat
from simcore.scheduling.turns.turn import Turn


def plan_prompts(batch: TurnBatch, turns: Turns) -> Turn | None:
    """A step of prompts, and with ``mixed`` of decodes; None if there is none. Its memory is allocated."""
    queue = batch.queue
    displaces = turns.displaces_beyond is not None
    if displaces or not batch.seats:
        batch.full = False
    if batch.cut is None:
        if batch.full or not queue.seats:
            return None
        if batch.slots_left() <= 0 and not displaces:
            batch.full = True
            return None
    queue.prioritise(batch.state.now_s)
    batch.prioritised = list(queue.seats)
    mixed_decodes = len(batch.seats) if turns.mixed else 0
    budget = PrefillBudget(
        batch.memory, turns.commitment, turns.input_tokens, turns.chunk_tokens, batch.seats, mixed_decodes
    )
    if batch.cut is not None:
        batch.cut.consider()
        if not budget.go_on_with(batch.cut):
            batch.cut = None
    _let_in(batch, budget, turns.displaces_beyond)
    admitted = [seat for seat in budget.batch if not seat.holds_row]
    if admitted:
        queue.take_out(admitted)
    batch.queue_again(batch.displaced)
    if not budget.batch:
        return None
    batch.cut = budget.cut or batch.cut
    turn = _extend(batch, budget.batch, admitted)
    if turns.mixed and batch.seats:
        _mix(batch, turn)
    return turn


def _let_in(batch: TurnBatch, budget: PrefillBudget, displaces_beyond: int | None) -> None:
    batching = batch.state.config.batching
    for seat in batch.prioritised:
        if budget.verdict is Verdict.SPENT:
            return
        if len(budget.batch) >= batch.slots_left(sum(other.holds_row for other in budget.batch)):
            batch.full = True
        if batch.full and (displaces_beyond is None or not _displace_for(batch, seat, budget, displaces_beyond)):
            return
        if batching.filters_admission and not batching.accepts(seat, len(batch.seats) + len(budget.batch)):
            return
        seat.consider()
        seat.prefix_tokens = batch.memory.look_up(seat.request, seat.known_tokens - 1)
        verdict = budget.add(seat)
        if verdict is Verdict.NO_MEMORY:
            batch.full = bool(budget.batch or batch.seats)
        if verdict is not Verdict.GO_ON:
            return


def _displace_for(batch: TurnBatch, seat: Seat, budget: PrefillBudget, beyond: int) -> bool:
    displaced = displace(seat, batch.seats, budget, beyond)
    for left, other in enumerate(displaced, start=1):
        batch.give_back(other, len(batch.seats) - left)
    chosen = set(map(id, displaced))
    budget.running = batch.seats = [other for other in batch.seats if id(other) not in chosen]
    batch.displaced += displaced
    return bool(displaced)


def _extend(batch: TurnBatch, seats: list[Seat], admitted: list[Seat]) -> Turn:
    new_tokens = [seat.end_tokens - seat.prefix_tokens for seat in seats]
    memory = batch.memory
    memory.make_blank(memory.blocks_for(sum(new_tokens)) + (len(seats) if memory.block_size_tokens > 1 else 0))
    for seat, tokens in zip(seats, new_tokens, strict=True):
        batch.take_row(seat)
        seat.request.computed_tokens = seat.prefix_tokens
        memory.grow(seat.request, tokens)
    return Turn("extend", seats, new_tokens, [seat.prefix_tokens for seat in seats], admitted, cut=batch.cut)


def _mix(batch: TurnBatch, turn: Turn) -> None:
    """Let those who run decode in a step of prompts, if memory has room for all of them."""
    batch.leave_out_ending()
    if not batch.seats or not batch.room_to_decode(batch.seats):
        return
    for seat in batch.seats:
        seat.consider()
        seat.end_tokens = seat.tokens_in_memory + 1
    turn.mode, turn.decoding = "mixed", batch.seats
    batch.grow_by_one(batch.seats)
    batch.seats = []
