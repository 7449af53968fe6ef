"""For how many steps a plan stands, and what ends that."""

from policies.batching import StepLimits
from policies.ordering import CacheAwareOrdering
from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import NS_PER_S
from simcore.core.request import Request
from simcore.scheduling.displacement import Displacement
from simcore.scheduling.room import blocks_kept_from, blocks_to_admit
from simcore.scheduling.state import SchedulerState


class Stability:
    """Says of a plan in which all that run decode, and nobody else does, how long the next ones must be like it."""

    __slots__ = ("_depends_on_cache", "_displacement", "_one_by_one", "_state")

    def __init__(self, state: SchedulerState, displacement: Displacement | None) -> None:
        config, memory = state.config, state.memory
        self._state = state
        self._displacement = displacement
        self._one_by_one = memory.partitioned or memory.timed
        self._depends_on_cache = isinstance(config.ordering, CacheAwareOrdering) or (
            # a first chunk begins where the cached prefix ends
            not config.reserve_whole_prompt and memory.forgets
        )

    def settle(self, plan: BatchPlan, limits: StepLimits) -> None:
        """Note on a plan how long it stands, whether arrivals can change it, and when it is worth another look."""
        state = self._state
        settled = not (state.config.inherit_priority and plan.short_of_memory)
        if settled and not (plan.chunks or plan.preempted or plan.stalled or plan.dropped or plan.swapped_in):
            full = len(state.running) - len(state.ending) >= limits.max_running_requests
            # who ends leaves a slot and memory to those who wait, and blocks that tiers may take
            left_to_some = state.ending and (state.waiting_requests or state.loading is not None)
            one_by_one = self._one_by_one or left_to_some or state.generates_for_others
            plan.stable_steps = 1 if one_by_one else limits.stable_steps
            if state.memory.releases and not full and (state.waiting.size or state.some_are_away()):
                plan.stable_steps = 1  # windows give back blocks meanwhile
            if state.waiting.size:
                plan.stable_steps = min(plan.stable_steps, self._order_stands(full))
                promotion_s = state.waiting.next_promotion_s()
                if promotion_s is not None and plan.decoding:
                    plan.retry_ns = int(promotion_s * NS_PER_S) - 1
            # where prompts are whole, decodes may pause for them
            room = not full and (limits.whole_prompts or limits.max_batched_tokens > plan.decoding)
            plan.admits_arrivals = room or self._displacement is not None
        if limits.retry_at_s is not None:
            plan.retry_ns = round(limits.retry_at_s * NS_PER_S)

    def _order_stands(self, full: bool) -> int:
        """Steps in which those who wait and were not admitted will not be either, while nobody arrives or finishes."""
        state = self._state
        if self._displacement is not None:
            return self._displacement.stable_steps
        if (self._depends_on_cache or state.config.ordering.changes_with_time) and not full:
            return 1  # the cache loses blocks meanwhile, or another request is first
        if state.groups is not None and not full and any(map(self._fits, state.groups.heads())):
            # Whose turn it is changes with what each group has been served meanwhile.
            return 1
        return state.config.ordering.stable_steps

    def _fits(self, request: Request) -> bool:
        """Whether memory might have room for a waiting request, now or in a later step of decodes alone."""
        state = self._state
        if not state.config.reserve_whole_prompt:
            return state.memory.free_for(request) > 0
        required = blocks_to_admit(state, request) + blocks_kept_from(state, request.priority)
        return state.memory.can_hold(request, required)
