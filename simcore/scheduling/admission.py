"""Letting waiting requests in: in the order of the queue, while slots, token budget and memory last."""

from policies.batching import StepLimits
from simcore.core.batch_plan import BatchPlan
from simcore.core.request import UNSET, ReadOnlyRequest, Request
from simcore.scheduling.room import blocks_kept_from, blocks_to_prefill, watermark
from simcore.scheduling.state import SchedulerState


def first_chunk_tokens(plan: BatchPlan, limits: StepLimits, known_tokens: int) -> int:
    """Tokens that the step has for a request that begins to run and has so many to compute; 0 if it must wait."""
    budget = limits.max_batched_tokens - plan.decoding - plan.prefill_tokens
    if budget <= 0:
        return 0
    if limits.whole_prompts:
        return 0 if known_tokens > budget and (plan.decoding or plan.chunks) else known_tokens
    return min(known_tokens, limits.max_chunk_tokens, budget)


def admit(state: SchedulerState, plan: BatchPlan, limits: StepLimits, now_ns: int) -> None:
    """Let requests of the queue in, up to the first that does not fit; who lacks an adapter slot is passed over."""
    passed_over: list[Request] = []
    waiting, memory, loading, config = state.waiting, state.memory, state.loading, state.config
    now_s, ordering, batching = state.now_s, config.ordering, config.batching
    while waiting.size and len(state.running) < limits.max_running_requests:
        request = waiting.first(now_s)
        if state.adapters is not None and not state.adapters.admits(request, state.running):
            passed_over.append(waiting.pop())
            continue
        cached_tokens, shared_blocks = memory.cached_prefix(request)
        known_tokens = request.tokens_to_compute - cached_tokens
        tokens = first_chunk_tokens(plan, limits, known_tokens)
        if not tokens:
            break
        # Batches in flight that cannot take each other's memory would push each other out for ever.
        whole = config.reserve_whole_prompt or (state.in_flight and request.preemptions)
        reserved_tokens = known_tokens if whole else tokens
        required = memory.most_blocks(cached_tokens + reserved_tokens, request) - shared_blocks
        required += blocks_kept_from(state, request.priority) + watermark(state)
        if state.in_flight and request.preemptions:
            required += blocks_to_prefill(state)
        if not memory.can_hold(request, required):
            break
        if batching.filters_admission and not batching.accepts(ReadOnlyRequest(request), len(state.running)):
            break
        waiting.pop()
        if ordering.hears_admitted:
            ordering.admitted(ReadOnlyRequest(request), now_s)
        if state.groups is not None:
            state.groups.group_of(request).admitted(request)
        if loading is not None:
            to_hold = required - memory.blocks_for(reserved_tokens)
            if loading.begin(request, cached_tokens, memory.free_blocks - to_hold):
                plan.loading = [*plan.loading, request]
                continue
        memory.admit(request, cached_tokens, tokens)
        request.computed_tokens = cached_tokens
        if request.first_scheduled_ns == UNSET and not request.preemptions:
            request.cached_tokens = cached_tokens
        state.start(request, tokens, plan, now_ns)
    for request in passed_over:
        waiting.push(request, now_s)
