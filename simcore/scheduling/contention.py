"""Filling a step when budget or memory may not suffice for all running requests: in order, one by one."""

from collections.abc import Collection

from policies.batching import StepLimits
from simcore.core.batch_plan import BatchPlan, BlockCopy
from simcore.core.request import Request
from simcore.scheduling.config import PreemptionMode
from simcore.scheduling.inheritance import by_inherited_priority
from simcore.scheduling.room import make_room
from simcore.scheduling.state import SchedulerState
from simcore.scheduling.swapping import SwappedRequest
from simcore.scheduling.view import RunningRequests


def fill_under_contention(
    state: SchedulerState, limits: StepLimits, now_ns: int, mode: PreemptionMode = "recompute"
) -> BatchPlan:
    """Serve running requests in order of admission, or what inherits urgency first, as far as budget and memory last.

    Where memory runs short, victims are preempted to be computed again ("recompute"), swapped out if there is room and
    else computed again ("swap"), or dropped ("reject"), or whoever needs a block sits this step out ("wait"); if then
    nobody could run, victims are preempted after all. A victim that this step had already served gives its tokens and
    blocks back. One that is ending anyway is released; with "recompute" it counts as preempted all the same, as in
    vLLM. Where a request is its own victim, the step goes on with the next; the latest one has no next. Unlike the
    plain way this walks the batch, so it is for steps in which something gives.
    """
    memory, pool = state.memory, state.pool
    budget = limits.max_batched_tokens
    served: dict[int, int] = {}
    plan = BatchPlan(preempted=[], dropped=[])
    inherits = state.config.inherit_priority
    running = by_inherited_priority(state, now_ns / 1e9) if inherits else [*state.running.values()]
    for request in running:
        if budget == 0:
            break
        if request.number not in state.running or request.number in state.ending:
            continue
        if request.pool is not None:
            if not limits.decode:
                continue
            tokens, blocks = 1, pool.blocks_each * pool.needs_block(request.origin)
        else:
            tokens = min(request.tokens_to_compute, limits.max_chunk_tokens, budget)
            blocks = memory.blocks_to_grow(request.computed_tokens, tokens)
        make_room(state, plan, blocks)
        if mode == "wait" and not memory.can_hold(request, blocks):
            plan.short_of_memory = True
            continue
        budget += _take_from_victims(state, plan, request, blocks, served, now_ns, mode)
        if request.number in state.running:
            if request.pool is not None:
                memory.extend(request, blocks)
            else:
                memory.grow(request, tokens)
            served[request.number] = tokens
            budget -= tokens
    if plan.short_of_memory and not served and not state.ending:
        return fill_under_contention(state, limits, now_ns, "recompute")
    _list(plan, state, served, limits)
    return plan


def _take_from_victims(
    state: SchedulerState,
    plan: BatchPlan,
    request: Request,
    blocks: int,
    served: dict[int, int],
    now_ns: int,
    mode: PreemptionMode,
) -> int:
    """Let victims go until a request can hold so many more blocks, or is one; returns the tokens that they give back.

    What a victim was ``served`` in this step is taken back.
    """
    given_back = 0
    while not state.memory.can_hold(request, blocks) and request.number in state.running:
        useful = RunningRequests(_useful(state, request))
        victim = state.running[state.config.preemption.victim(useful).number]
        granted = served.pop(victim.number, 0)
        given_back += granted
        if mode != "recompute" and victim.number in state.ending:
            state.release_ended(victim)
            plan.released = [*plan.released, victim]
            continue
        if mode == "reject":
            state.drop(victim, granted)
            plan.dropped = [*plan.dropped, victim]
            continue
        if mode == "swap" and _swap_out(state, plan, victim, granted, now_ns):
            plan.swapped_out = [*plan.swapped_out, victim]
        else:
            state.preempt(victim, now_ns / 1e9, granted)
        plan.preempted = [*plan.preempted, victim]
    return given_back


def _swap_out(state: SchedulerState, plan: BatchPlan, request: Request, granted_tokens: int, now_ns: int) -> bool:
    """Preempt a running request into swap space; False if it has nothing to keep or there is no room for it.

    Nor does one go that might never come back: it takes no pinned blocks then, though it may have found some before.
    """
    swapping, memory = state.swapping, state.memory
    if swapping is None:
        return False
    decoding = request.pool is not None
    tokens = request.tokens_in_memory
    blocks = memory.blocks_for(tokens)
    if not tokens or blocks > swapping.space.free_blocks:
        return False
    if memory.most_blocks(request.prompt_tokens + request.generated_tokens) > memory.unpinned_for(request):
        return False
    held = memory.held_blocks(request) if memory.numbered else []
    state.take_memory(request, granted_tokens)
    taken = swapping.space.move_out(now_ns, blocks)
    plan.copies_out = [*plan.copies_out, *map(BlockCopy, held, taken)]
    swapping.away.append(SwappedRequest(request, decoding, taken))
    return True


def _useful(state: SchedulerState, request: Request) -> Collection[Request]:
    """The running requests whose memory this one could use.

    Those that are ending are among them, as an engine does not know of it yet; but predictors have forgotten them.
    """
    running = state.running.values()
    forgotten = state.ending if state.config.preemption.predictors else {}
    if not state.memory.partitioned and not forgotten:
        return running
    apart = state.memory.apart
    return [other for other in running if other.number not in forgotten and not apart(request, other)]


def _list(plan: BatchPlan, state: SchedulerState, served: dict[int, int], limits: StepLimits) -> None:
    """Write down who is served, and who decodes but is not."""
    stalled: list[Request] = []
    for request in state.running.values():
        tokens = served.get(request.number, 0)
        if request.pool is None:
            if tokens:
                plan.add_chunk(request, tokens)
        elif tokens:
            plan.decoding += 1
        elif limits.decode:
            stalled.append(request)
    plan.stalled = stalled
