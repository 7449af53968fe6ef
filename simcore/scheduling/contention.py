"""Filling a step when budget or memory may not suffice for all running requests: in order, one by one."""

from typing import TYPE_CHECKING, Literal

from policies.batching import StepLimits
from policies.views import RunningView
from simcore.core.batch_plan import BatchPlan
from simcore.core.request import Request
from simcore.scheduling.inheritance import by_inherited_priority
from simcore.scheduling.loading import make_room
from simcore.scheduling.swapping import swap_out

if TYPE_CHECKING:
    from simcore.scheduling.scheduler import Scheduler

PreemptionMode = Literal["recompute", "swap", "wait", "reject"]


def fill_under_contention(
    scheduler: "Scheduler", limits: StepLimits, now_ns: int, mode: PreemptionMode = "recompute"
) -> BatchPlan:
    """Serve running requests in order of admission, or heirs of urgency first, as far as budget and memory last.

    Where memory runs short, victims are preempted to be computed again ("recompute"), swapped out if there is room and
    else computed again ("swap"), or dropped ("reject"), or whoever needs a block sits this step out ("wait"); if then
    nobody could run, victims are preempted after all. A victim that this step had already served gives its tokens and
    blocks back. Where a request is its own victim, the step goes on with the next; the latest one has no next. Unlike
    the plain way this walks the batch, so it is for steps in which something gives.
    """
    memory, pool = scheduler.memory, scheduler.pool
    budget = limits.max_batched_tokens
    served: dict[int, int] = {}
    plan = BatchPlan(preempted=[], dropped=[])
    now_s = now_ns / 1e9
    running = by_inherited_priority(scheduler, now_s) if scheduler.inherit_priority else [*scheduler.running.values()]
    for request in running:
        if budget == 0:
            break
        if request.number not in scheduler.running or request.number in scheduler.ending:
            continue
        if request.pool is not None:
            if not limits.decode:
                continue
            tokens, blocks = 1, pool.blocks_each * pool.needs_block(request.origin)
        else:
            tokens = min(request.tokens_to_compute, limits.max_chunk_tokens, budget)
            blocks = memory.blocks_to_grow(request.computed_tokens, tokens)
        make_room(scheduler, plan, blocks)
        if mode == "wait" and blocks > memory.free_for(request):
            plan.short_of_memory = True
            continue
        while blocks > memory.free_for(request) and request.number in scheduler.running:
            victim = scheduler.running[scheduler.preemption.victim(_useful(scheduler, request)).number]
            granted = served.pop(victim.number, 0)
            budget += granted
            ends_anyway = victim.number in scheduler.ending
            if mode == "reject" and not ends_anyway:
                scheduler.drop(victim, granted)
                plan.dropped = [*plan.dropped, victim]
                continue
            if mode == "swap" and not ends_anyway and swap_out(scheduler, victim, granted, now_ns):
                plan.swapped_out = [*plan.swapped_out, victim]
            else:
                scheduler.preempt(victim, now_s, granted)
            plan.preempted = [*plan.preempted, victim]
        if request.number in scheduler.running:
            if request.pool is not None:
                memory.extend(request, blocks)
            else:
                memory.grow(request, tokens)
            served[request.number] = tokens
            budget -= tokens
    if plan.short_of_memory and not served and not scheduler.ending:
        return fill_under_contention(scheduler, limits, now_ns, "recompute")
    _list(plan, scheduler, served, limits)
    return plan


def _useful(scheduler: "Scheduler", request: Request) -> RunningView:
    """The running requests whose memory this one could use."""
    running = scheduler.running.values()
    if not scheduler.memory.partitioned:
        return running
    return [other for other in running if not scheduler.memory.apart(request, other)]


def _list(plan: BatchPlan, scheduler: "Scheduler", served: dict[int, int], limits: StepLimits) -> None:
    """Write down who is served, and who decodes but is not."""
    stalled: list[Request] = []
    for request in scheduler.running.values():
        tokens = served.get(request.number, 0)
        if request.pool is None:
            if tokens:
                plan.add_chunk(request, tokens)
        elif tokens:
            plan.decoding += 1
        elif limits.decode:
            stalled.append(request)
    plan.stalled = stalled
