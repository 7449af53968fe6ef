"""Priority inheritance: whoever holds back an urgent request is served as if it were as urgent."""

from simcore.core.request import Request
from simcore.scheduling.room import blocks_kept_from
from simcore.scheduling.state import SchedulerState


def by_inherited_priority(state: SchedulerState, now_s: float) -> list[Request]:
    """The running requests in the order in which memory goes to them, those that inherit urgency first.

    KV memory is a lock that many share. The request that is next to be admitted is held back by a less urgent one whose
    blocks would make room for it, or, where no single one's would, by all that are less urgent. These inherit its
    urgency (Sha, Rajkumar and Lehoczky, IEEE Trans. Computers 1990): else requests between the two in urgency take
    each block that gets free, and the holder can neither go on nor let go. All others keep the order of admission.
    """
    running = list(state.running.values())
    if not state.waiting.size:
        return running
    urgent, memory = state.waiting.first(now_s), state.memory
    missing = memory.blocks_for(urgent.tokens_to_compute) + blocks_kept_from(state, urgent.priority)
    missing -= memory.free_blocks
    if missing <= 0:
        return running
    patient = [request for request in running if request.priority > urgent.priority]
    holders = [request for request in patient if memory.blocks_for(request.tokens_in_memory) >= missing]
    inheriting = {request.number for request in holders or patient}
    return sorted(running, key=lambda request: request.number not in inheriting)
