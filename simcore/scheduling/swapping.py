"""Requests that were preempted with their KV memory kept aside, and how they return."""

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from policies.batching import StepLimits
from simcore.core.batch_plan import BatchPlan
from simcore.core.request import Request
from simcore.memory.swap import SwapSpace
from simcore.scheduling.loading import make_room

if TYPE_CHECKING:
    from simcore.scheduling.scheduler import Scheduler


class SwappedRequest(NamedTuple):
    """A request that is swapped out, whether it was decoding, and the blocks that it has in swap space."""

    request: Request
    decoding: bool
    blocks: int


@dataclass(slots=True)
class Swapping:
    """Swapped-out requests in the order in which they left; they return in it, before anyone else is admitted."""

    space: SwapSpace
    away: deque[SwappedRequest] = field(default_factory=deque)

    def abandon(self, request: Request) -> bool:
        """Forget a request if it is away."""
        for away in self.away:
            if away.request is request:
                self.away.remove(away)
                self.space.give_up(away.blocks)
                return True
        return False

    def check(self) -> None:
        """Raise AssertionError if swap space is not in use by those that are away, or is overfull."""
        used = sum(away.blocks for away in self.away)
        if used != self.space.used_blocks or self.space.free_blocks < 0:
            raise AssertionError(f"{used} blocks are swapped out, noted {self.space.used_blocks}")


def swap_out(scheduler: "Scheduler", request: Request, granted_tokens: int, now_ns: int) -> bool:
    """Preempt a running request into swap space; False if it has nothing to keep or there is no room for it.

    Nor does one go that might never come back: it takes no pinned blocks then, though it may have found some before.
    """
    swapping, memory = scheduler.swapping, scheduler.memory
    if swapping is None:
        return False
    decoding = request.pool is not None
    tokens = scheduler.pool.context_of(request.origin) if decoding else request.computed_tokens
    blocks = memory.blocks_for(tokens)
    if not tokens or blocks > swapping.space.free_blocks:
        return False
    if memory.most_blocks(request.prompt_tokens + request.generated_tokens) > memory.unpinned_for(request):
        return False
    scheduler.take_memory(request, granted_tokens)
    swapping.space.move_out(now_ns, blocks)
    swapping.away.append(SwappedRequest(request, decoding, blocks))
    return True


def bring_back(scheduler: "Scheduler", swapping: Swapping, plan: BatchPlan, limits: StepLimits, now_ns: int) -> None:
    """Swap requests in and let them run on, while slots, token budget and memory last."""
    memory = scheduler.memory
    while swapping.away and len(scheduler.running) < limits.max_running_requests:
        request, decoding, blocks = swapping.away[0]
        budget = limits.max_batched_tokens - plan.decoding - plan.prefill_tokens
        tokens = min(request.tokens_to_compute, limits.max_chunk_tokens, budget)
        if tokens <= 0 or (decoding and not limits.decode):
            return
        held_tokens = request.computed_tokens
        required = memory.blocks_for(held_tokens) + memory.blocks_to_grow(held_tokens, tokens) + scheduler.watermark
        if required > memory.free_for(request):
            if not scheduler.running:
                make_room(scheduler, plan, required)
            return
        swapping.away.popleft()
        swapping.space.move_in(now_ns, blocks)
        memory.restore(request, int(decoding))
        scheduler.resume(request, decoding)
        if decoding:
            plan.decoding += 1
        else:
            plan.add_chunk(request, tokens)
            memory.grow(request, tokens)
        plan.swapped_in = [*plan.swapped_in, request]
