"""Filling a step when budget or memory may not suffice for all running requests: in order, one by one."""

from typing import TYPE_CHECKING

from policies.batching import StepLimits
from simcore.request import Request
from simcore.scheduling.plan import BatchPlan

if TYPE_CHECKING:
    from simcore.scheduling.scheduler import Scheduler


def fill_under_contention(scheduler: "Scheduler", limits: StepLimits, now_s: float) -> BatchPlan:
    """Serve running requests in order of admission, preempting where memory runs short.

    A victim that this step had already served gives its tokens and blocks back. Unlike the plain way this walks the
    batch, so it is for steps in which something gives.
    """
    memory, pool = scheduler.memory, scheduler.pool
    budget = limits.max_batched_tokens
    served: dict[int, int] = {}
    grown_by: dict[int, int] = {}
    preempted: list[Request] = []
    for request in list(scheduler.running.values()):
        if budget == 0:
            break
        if request.number not in scheduler.running:
            continue
        if request.pool is not None:
            if not limits.decode:
                continue
            tokens, blocks = 1, int(pool.needs_block(request.origin))
        else:
            tokens = min(request.tokens_to_compute, limits.max_chunk_tokens, budget)
            blocks = memory.blocks_to_grow(request.computed_tokens, tokens)
        while blocks > memory.free_blocks and request.number in scheduler.running:
            victim = scheduler.running[scheduler.preemption.victim(scheduler.running.values()).number]
            budget += served.pop(victim.number, 0)
            memory.release(grown_by.pop(victim.number, 0))
            scheduler.preempt(victim, now_s)
            preempted.append(victim)
        if request.number in scheduler.running:
            memory.allocate(blocks)
            served[request.number], grown_by[request.number] = tokens, blocks
            budget -= tokens

    plan = BatchPlan(preempted=preempted)
    stalled = []
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
    return plan
