"""The scheduler of one replica: fills each step within the limits that its policies set."""

from collections.abc import Mapping
from dataclasses import replace

from policies.batching import Batching, StepLimits
from policies.ordering import CacheAwareOrdering, Ordering
from policies.preemption import Preemption
from simcore.core.batch_plan import BatchPlan
from simcore.core.clock import NS_PER_S
from simcore.core.request import Request
from simcore.memory import KVMemory
from simcore.scheduling.admission import admit
from simcore.scheduling.contention import PreemptionMode, fill_under_contention
from simcore.scheduling.loading import Loading, admit_loaded, make_room
from simcore.scheduling.scheduler_state import SchedulerState
from simcore.scheduling.swapping import Swapping, bring_back


class Scheduler(SchedulerState):
    """Continuous batching over paged KV memory, step for step as vLLM V1 does it.

    A step first serves the requests that already run, in the order of their admission: one token for each that
    decodes, the next chunk of its prompt for each that does not yet. If memory runs short, the preemption policy
    picks victims. Then waiting requests are admitted in the order of the ordering policy while slots, token budget and
    memory last; the first that does not fit ends admission, so that none is overtaken. A step that preempts admits
    nobody.

    ``reserve_whole_prompt`` admits a request only if the blocks for all its known tokens are free, ``reserved_blocks``
    only if the blocks reserved for more urgent levels then still are, ``watermark_blocks`` only if so many are, unless
    nobody runs. With ``inherit_priority`` those who hold back a more urgent request are served first where memory runs
    short. With ``loading``, an admitted request waits aside until that part of its prefix is loaded which a tier below
    has. With ``swapping``, victims keep what they computed.
    """

    __slots__ = (
        "_depends_on_cache",
        "_one_by_one",
        "_preemption_mode",
        "_reserved_blocks",
        "_some_go_before",
        "_watermark_blocks",
        "filters_admission",
        "inherit_priority",
        "ordering_learns",
        "predictors",
        "preemption",
        "reserve_whole_prompt",
    )

    def __init__(
        self,
        ordering: Ordering,
        batching: Batching,
        preemption: Preemption,
        memory: KVMemory,
        window_tokens: tuple[int, ...] = (),
        reserve_whole_prompt: bool = True,
        preemption_mode: PreemptionMode = "recompute",
        reserved_blocks: Mapping[int, int] | None = None,
        watermark_blocks: int = 0,
        inherit_priority: bool = False,
        loading: Loading | None = None,
        swapping: Swapping | None = None,
        ends_late: bool = False,
    ) -> None:
        super().__init__(ordering, batching, memory, window_tokens, loading, swapping, ends_late)
        self.preemption = preemption
        self.predictors = (*ordering.predictors, *preemption.predictors)
        self.reserve_whole_prompt = reserve_whole_prompt
        self.inherit_priority = inherit_priority
        self._preemption_mode = preemption_mode
        self._reserved_blocks = dict(reserved_blocks or {})
        self._watermark_blocks = watermark_blocks
        self._one_by_one = memory.partitioned or memory.timed
        self._depends_on_cache = isinstance(ordering, CacheAwareOrdering) or (
            # a first chunk begins where the cached prefix ends
            not reserve_whole_prompt and memory.forgets
        )
        self._some_go_before = loading is not None or swapping is not None
        self.ordering_learns = type(ordering).admitted is not Ordering.admitted
        self.filters_admission = type(batching).accepts is not Batching.accepts

    def plan(self, now_ns: int) -> BatchPlan:
        """The next step; its blocks are allocated, its preempted requests back in the queue."""
        self.now_s = now_s = now_ns / 1e9
        if self.loading is not None:
            self.loading.after_step()
        limits = self.batching.limits(self, now_s)
        if self.lanes:
            elsewhere = self.running_requests - len(self.running)
            limits = replace(limits, max_running_requests=max(limits.max_running_requests - elsewhere, 0))
        displaced: list[Request] = []
        if self._displacement is not None and self.queue_is_next():
            displaced = self._displacement.make_room(limits, now_s)
        plan = self._fill(limits, now_ns)
        if not (limits.decode or plan.chunks or plan.preempted or plan.dropped) and (
            self.pool.size or self.some_are_away()
        ):
            # Nobody could be admitted after all: rather decode than do nothing.
            limits = replace(limits, decode=True)
            loading = plan.loading
            plan = self._fill(limits, now_ns)
            plan.loading = [*loading, *plan.loading]
        if displaced:
            plan.preempted = [*displaced, *plan.preempted]
        settled = not (self.inherit_priority and plan.short_of_memory)
        if settled and not (plan.chunks or plan.preempted or plan.stalled or plan.dropped or plan.swapped_in):
            full = len(self.running) - len(self.ending) >= limits.max_running_requests
            one_by_one = self._one_by_one or self.ending or self._generates_for_others
            plan.stable_steps = 1 if one_by_one else limits.stable_steps
            if self._frees_window_blocks and not full and (self.waiting.size or self.some_are_away()):
                plan.stable_steps = 1  # windows give back blocks meanwhile
            if self.waiting.size:
                plan.stable_steps = min(plan.stable_steps, self._order_stands(full))
                promotion_s = self.waiting.next_promotion_s()
                if promotion_s is not None and plan.decoding:
                    plan.retry_ns = int(promotion_s * NS_PER_S) - 1
            # where prompts are whole, decodes may pause for them
            room = not full and (limits.whole_prompts or limits.max_batched_tokens > plan.decoding)
            plan.admits_arrivals = room or self._displacement is not None
        if limits.retry_at_s is not None:
            plan.retry_ns = round(limits.retry_at_s * NS_PER_S)
        self._last_plan = plan
        return plan

    def _order_stands(self, full: bool) -> int:
        """Steps in which those who wait and were not admitted will not be either, while nobody arrives or finishes."""
        if self._displacement is not None:
            return self._displacement.stable_steps
        if self._depends_on_cache and not full:
            return 1  # the cache loses blocks meanwhile
        if self.groups is not None and not full and any(map(self._fits, self.groups.heads())):
            # Whose turn it is changes with what each group has been served meanwhile.
            return 1
        return self.ordering.stable_steps

    def _fits(self, request: Request) -> bool:
        """Whether memory might have room for a waiting request, now or in a later step of decodes alone."""
        if not self.reserve_whole_prompt:
            return self.memory.free_for(request) > 0
        required = self.blocks_to_admit(request) + self.blocks_kept_from(request.priority)
        return required <= self.memory.free_for(request)

    def _fill(self, limits: StepLimits, now_ns: int) -> BatchPlan:
        plan = self._fill_running(limits) or fill_under_contention(self, limits, now_ns, self._preemption_mode)
        if self._generates_for_others:
            self.publish_generated(plan)
        contended = plan.preempted or plan.dropped or plan.short_of_memory
        if contended or (self._some_go_before and not self._admit_those_before(plan, limits, now_ns)):
            return plan
        if limits.admit and self.waiting.size:
            admit(self, plan, limits, now_ns)
        return plan

    def _admit_those_before(self, plan: BatchPlan, limits: StepLimits, now_ns: int) -> bool:
        """Let those run who go before the queue; returns whether it is the queue's turn then."""
        if self.swapping is not None and self.swapping.away:
            bring_back(self, self.swapping, plan, limits, now_ns)
            if self.swapping.away or plan.preempted:
                return False
        if self.loading is not None and self.loading.ready:
            if limits.admit:
                admit_loaded(self, self.loading, plan, limits, now_ns)
            elif not self.running:
                # The batching policy may admit nobody just because the first has no room for all of its tokens.
                make_room(self, plan, self.next_blocks or 0, keep=1)
            return not self.loading.ready and not plan.preempted
        return True

    def _fill_running(self, limits: StepLimits) -> BatchPlan | None:
        """Serve all running requests, or None if budget or memory may not suffice for all of them."""
        pool, memory = self.pool, self.memory
        if memory.partitioned:
            return None
        decoding, blocks = (pool.size, pool.blocks_due()) if limits.decode else (0, 0)
        budget = limits.max_batched_tokens - decoding
        if budget < 0 or blocks > memory.free_blocks:
            return None
        plan = BatchPlan(decoding)
        pool_blocks = blocks
        for request in self.prefilling.values():
            wanted = min(request.tokens_to_compute, limits.max_chunk_tokens)
            if wanted > budget and request.admission < self._latest_decoding_admission:
                return None
            tokens = min(wanted, budget)
            if tokens == 0:
                break
            budget -= tokens
            blocks += memory.blocks_to_grow(request.computed_tokens, tokens)
            plan.add_chunk(request, tokens)
        if blocks > memory.free_blocks:
            return None
        if pool_blocks:
            memory.allocate(pool_blocks)
        for request, tokens, _ in plan.chunks:
            memory.grow(request, tokens)
        return plan

    @property
    def watermark(self) -> int:
        """Blocks that must stay free when a request is let in, as there are others that run."""
        return self._watermark_blocks if self.running else 0

    def blocks_to_prefill(self) -> int:
        """Blocks that running requests of all batches in flight have yet to take for what is known of them."""
        requests = (request for lane in self.lanes for request in lane.prefilling.values())
        return sum(self.memory.blocks_to_grow(each.computed_tokens, each.tokens_to_compute) for each in requests)

    def blocks_kept_from(self, priority: int) -> int:
        """Blocks that are reserved for more urgent requests than those of this level."""
        if not self._reserved_blocks:
            return 0
        return sum(blocks for level, blocks in self._reserved_blocks.items() if level < priority)

    def steps_before_shortage(self, limit: int) -> int:
        """How many steps like the one just planned, itself included, memory has room for; at most ``limit``."""
        if limit == 1:
            return 1
        return 1 + self.pool.steps_within(self.memory.free_blocks, limit - 1, after=1)
