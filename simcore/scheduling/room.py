"""How many blocks must be free before a request is let in, and who gives way first."""

from simcore.core.batch_plan import BatchPlan
from simcore.core.request import ReadOnlyRequest, Request
from simcore.scheduling.state import SchedulerState


def blocks_to_admit(state: SchedulerState, request: Request) -> int:
    """Free blocks that a waiting request needs for all its known tokens."""
    _, shared_blocks = state.memory.cached_prefix(request)
    return state.memory.most_blocks(request.tokens_to_compute, request) - shared_blocks


def next_blocks(state: SchedulerState) -> int | None:
    """Blocks that the request that is next to be admitted needs, None if nobody waits."""
    request = state.next_request()
    if request is None:
        return None
    if request.computed_tokens:
        return state.memory.blocks_to_grow(request.computed_tokens, request.tokens_to_compute)
    return blocks_to_admit(state, request)


def watermark(state: SchedulerState) -> int:
    """Blocks that must stay free when a request is let in, as there are others that run."""
    return state.config.watermark_blocks if state.running else 0


def blocks_to_prefill(state: SchedulerState) -> int:
    """Blocks that running requests of all batches in flight have yet to take for what is known of them."""
    requests = (request for batch in state.in_flight for request in batch.prefilling.values())
    return sum(state.memory.blocks_to_grow(each.computed_tokens, each.tokens_to_compute) for each in requests)


def blocks_kept_from(state: SchedulerState, priority: int) -> int:
    """Blocks that are reserved for more urgent requests than those of this level."""
    reserved = state.config.reserved_blocks
    return sum(blocks for level, blocks in reserved.items() if level < priority) if reserved else 0


def make_room(state: SchedulerState, plan: BatchPlan, blocks: int, keep: int = 0) -> None:
    """Preempt requests that have loaded but not begun to run, until so many blocks are free; the last go first.

    All but the first ``keep`` may go. They lost nothing but time, and nobody who runs must give way to them.
    """
    loading = state.loading
    while loading is not None and len(loading.ready) > keep and blocks > state.memory.free_blocks:
        request = loading.ready.pop()
        _send_back(state, request)
        plan.preempted = [*plan.preempted, request]


def _send_back(state: SchedulerState, request: Request) -> None:
    """Put a request back into the queue that has loaded its prefix but does not run yet."""
    if state.groups is not None:
        state.groups.group_of(request).left(request, decoding=False, finished=False)
    state.memory.release(request, comes_back=True)
    request.computed_tokens = 0
    request.preemptions += 1
    if state.config.batching.hears_ended:
        state.config.batching.ended(ReadOnlyRequest(request))
    state.waiting.push(request, state.now_s)
