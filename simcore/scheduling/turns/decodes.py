"""Steps of decodes: all who run go on, or some give way."""

from policies.commitment import Commitment
from simcore.scheduling.turns.batch import TurnBatch
from simcore.scheduling.turns.turn import Turn


def plan_decodes(batch: TurnBatch, commitment: Commitment) -> Turn | None:
    """A step of decodes; None if nobody is left to decode. Its memory is allocated."""
    before = len(batch.seats)
    ending = batch.leave_out_ending()
    if not batch.seats:
        batch.full = False
        return None
    if batch.room_to_decode(batch.seats):
        commitment.decoded(1)
    elif ending:
        batch.full = False  # their memory will be free in the next step
        return None
    else:
        _retract(batch, commitment)
    if len(batch.seats) < before:
        batch.full = False
    if not batch.seats:
        return None
    batch.grow_by_one(batch.seats)
    return Turn("decode", decoding=batch.seats)


def _retract(batch: TurnBatch, commitment: Commitment) -> None:
    """Take memory from some, at least from one if there are two, until the others can decode."""
    by_number = {seat.number: seat for seat in batch.seats}
    left = [by_number[view.number] for view in batch.state.config.preemption.keep_first(batch.seats)]
    while len(left) > 1 and (not batch.retracted or not batch.room_to_decode(left)):
        seat = left.pop()
        batch.give_back(seat, len(left))
        batch.retracted.append(seat)
    if len(left) == 1 and not batch.room_to_decode(left):
        seat = left.pop()
        batch.leave(seat)
        batch.state.drop(seat.request)
        batch.dropped.append(seat)
    batch.seats = left
    commitment.retracted(left)
    batch.queue_again(batch.retracted)
