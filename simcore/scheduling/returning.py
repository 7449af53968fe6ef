"""Requests that run before anyone in the queue is let in: those swapped out, and those whose prefix was loaded."""

from policies.batching import StepLimits
from simcore.core.batch_plan import BatchPlan, BlockCopy
from simcore.core.request import ReadOnlyRequest
from simcore.scheduling.admission import first_chunk_tokens
from simcore.scheduling.loading import Loading
from simcore.scheduling.room import blocks_kept_from, make_room, next_blocks, watermark
from simcore.scheduling.state import SchedulerState
from simcore.scheduling.swapping import Swapping


def admit_those_before(state: SchedulerState, plan: BatchPlan, limits: StepLimits, now_ns: int) -> bool:
    """Let those run who go before the queue; returns whether it is the queue's turn then."""
    swapping, loading = state.swapping, state.loading
    if swapping is not None and swapping.away:
        _bring_back(state, swapping, plan, limits, now_ns)
        if swapping.away or plan.preempted:
            return False
    if loading is not None and loading.ready:
        if limits.admit:
            _admit_loaded(state, loading, plan, limits, now_ns)
        elif not state.running:
            # The batching policy may admit nobody just because the first has no room for all of its tokens.
            make_room(state, plan, next_blocks(state) or 0, keep=1)
        return not loading.ready and not plan.preempted
    return True


def _admit_loaded(state: SchedulerState, loading: Loading, plan: BatchPlan, limits: StepLimits, now_ns: int) -> None:
    """Let requests run that have loaded, in the order in which their loads ended, while there is room."""
    memory, batching = state.memory, state.config.batching
    while loading.ready and len(state.running) < limits.max_running_requests:
        request = loading.ready[0]
        known_tokens = request.tokens_to_compute
        tokens = first_chunk_tokens(plan, limits, known_tokens)
        if not tokens:
            return
        reserved = known_tokens if state.config.reserve_whole_prompt else tokens
        required = memory.blocks_to_grow(request.computed_tokens, reserved)
        required += blocks_kept_from(state, request.priority) + watermark(state)
        if required > memory.free_blocks:
            if not state.running:
                make_room(state, plan, required, keep=1)
            return
        if batching.filters_admission and not batching.accepts(ReadOnlyRequest(request), len(state.running)):
            return
        loading.ready.popleft()
        state.start(request, tokens, plan, now_ns)
        memory.grow(request, tokens)


def _bring_back(state: SchedulerState, swapping: Swapping, plan: BatchPlan, limits: StepLimits, now_ns: int) -> None:
    """Swap requests in and let them run on, while slots, token budget and memory last."""
    memory = state.memory
    while swapping.away and len(state.running) < limits.max_running_requests:
        request, decoding, blocks = swapping.away[0]
        budget = limits.max_batched_tokens - plan.decoding - plan.prefill_tokens
        tokens = min(request.tokens_to_compute, limits.max_chunk_tokens, budget)
        if tokens <= 0 or (decoding and not limits.decode):
            return
        held_tokens = request.computed_tokens
        required = memory.blocks_for(held_tokens) + memory.blocks_to_grow(held_tokens, tokens) + watermark(state)
        if not memory.can_hold(request, required):
            if not state.running:
                make_room(state, plan, required)
            return
        swapping.away.popleft()
        swapping.space.move_in(now_ns, blocks)
        memory.restore(request, int(decoding))
        if memory.numbered:
            plan.copies_in = [*plan.copies_in, *map(BlockCopy, blocks, memory.held_blocks(request))]
        state.resume(request, decoding)
        if decoding:
            plan.decoding += 1
        else:
            plan.add_chunk(request, tokens)
            memory.grow(request, tokens)
        plan.swapped_in = [*plan.swapped_in, request]
