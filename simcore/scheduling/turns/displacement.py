"""Taking a slot from a less urgent request that runs."""

from collections.abc import Sequence

from simcore.scheduling.turns.budget import CLIPPED_OUTPUT_TOKENS, PrefillBudget
from simcore.scheduling.turns.seat import Seat


def displace(seat: Seat, running: Sequence[Seat], budget: PrefillBudget, beyond: int) -> list[Seat]:
    """Who gives way to a waiting request, in batch order; nobody if not enough may.

    The least urgent go first, among equals who was queued last, as far as their priority is worse by more than
    ``beyond``, until what was set aside for them makes up for what the request lacks. That counts its prompt as of
    when it was last considered: not at all the first time. What they had set aside is given back to the budget.
    """
    wanted = seat.known_tokens - seat.prefix_tokens + min(seat.max_output_tokens, CLIPPED_OUTPUT_TOKENS)
    missing = wanted - budget.left_tokens
    chosen: list[Seat] = []
    least_urgent_first = sorted(running, key=lambda other: (-other.priority, -other.queued_at))
    for other in least_urgent_first:
        if other.finished:
            continue
        if other.priority - seat.priority <= beyond:
            break
        chosen.append(other)
        missing -= budget.set_aside(other)
        if missing <= 0:
            break
    if not chosen or missing > 0:
        return []
    for other in chosen:
        budget.offset_tokens -= budget.set_aside(other)
    numbers = {other.number for other in chosen}
    return [other for other in running if other.number in numbers]
