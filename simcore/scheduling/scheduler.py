"""The scheduler of one replica: fills each step within the limits that its policies set."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from policies.batching import StepLimits
from simcore.core.batch_plan import BatchPlan, BlockCopy
from simcore.core.clock import to_s
from simcore.core.request import UNSET, ReadOnlyRequest, Request
from simcore.memory import KVMemory
from simcore.scheduling.admission import admit
from simcore.scheduling.arriving import Arriving, release_prompt
from simcore.scheduling.config import SchedulerConfig
from simcore.scheduling.contention import fill_under_contention
from simcore.scheduling.displacement import Displacement
from simcore.scheduling.loading import Loading
from simcore.scheduling.returning import admit_those_before
from simcore.scheduling.stability import Stability
from simcore.scheduling.state import SchedulerState
from simcore.scheduling.step import Committed, StepResult
from simcore.scheduling.swapping import Swapping
from simcore.scheduling.view import SchedulerView, StepPrice


class Scheduler:
    """Continuous batching over paged KV memory, step for step as vLLM V1 does it.

    A step first serves the requests that already run, in the order of their admission: one token for each that
    decodes, the next chunk of its prompt for each that does not yet. If memory runs short, the preemption policy
    picks victims. Then waiting requests are admitted in the order of the ordering policy while slots, token budget and
    memory last; the first that does not fit ends admission, so that none is overtaken. A step that preempts admits
    nobody.

    With ``loading``, an admitted request waits aside until that part of its prefix is loaded which a tier below has.
    With ``swapping``, victims keep what they computed. ``step_price`` tells policies what a step would take.
    See ``simcore.scheduling.step`` for how a scheduler is used.
    """

    __slots__ = (
        "_copies",
        "_displacement",
        "_predictors",
        "_slots",
        "_some_go_before",
        "_stability",
        "arriving",
        "cancelled",
        "config",
        "held",
        "memory",
        "state",
        "view",
    )

    def __init__(
        self,
        config: SchedulerConfig,
        memory: KVMemory,
        loading: Loading | None = None,
        swapping: Swapping | None = None,
        step_price: StepPrice | None = None,
    ) -> None:
        self.config = config
        self.memory = memory
        self.state = state = SchedulerState(config, memory, loading, swapping)
        self.view = SchedulerView(state, step_price)
        self._displacement = None if state.keys is None else Displacement(state, state.keys)
        self._stability = Stability(state, self._displacement)
        self._predictors = config.predictors
        self.arriving: Arriving | None = None
        """Requests that others hand over to it, where any do; ``held`` are those whose memory stays for others to
        read once they are complete here."""
        self.held: dict[int, Request] | None = None
        self._some_go_before = loading is not None or swapping is not None
        self.cancelled: dict[int, Request] = {}
        self._copies: list[BlockCopy] = []
        self._slots = 0

    def share(self, first: "Scheduler") -> None:
        """Fill other batches of the same replica: with its queue, its slots, and its memory already."""
        self.state.share(first.state)

    def submit(self, request: Request, now_ns: int) -> None:
        """Enter a request into the queue."""
        self.state.submit(request, to_s(now_ns))

    def cancel(self, request: Request) -> None:
        """Withdraw a request that waits or runs, whatever step is in progress; its memory is free in the next plan."""
        self.cancelled[request.number] = request

    def drop_cancelled(self) -> list[Request]:
        """Free what cancelled requests hold that have not ended meanwhile; returns them."""
        if not self.cancelled:
            return []
        cancelled = list(self.cancelled.values())
        self.cancelled.clear()
        for request in cancelled:
            self.drop(request)
        return cancelled

    def drop(self, request: Request) -> None:
        """Forget a request at once, between two steps."""
        if self.arriving is not None and self.arriving.abandon(request):
            return
        incoming = self.state.incoming
        entry = next((entry for entry in incoming if entry[1] is request), None)
        if entry is None:
            self.state.drop(request)
        else:
            incoming.remove(entry)

    @property
    def held_elsewhere(self) -> Iterator[tuple[Request, int]]:
        """Who holds memory without running, each with the tokens it has blocks for."""
        yield from () if self.arriving is None else self.arriving.held_tokens
        yield from ((request, request.prompt_tokens) for request in (self.held or {}).values())

    def let_go(self, request: Request) -> None:
        """Free what a request still holds that is complete here."""
        assert self.held is not None
        del self.held[request.number]
        release_prompt(self.state, request)

    def plan(self, now_ns: int) -> BatchPlan:
        """The next step; its blocks are allocated, its preempted requests back in the queue."""
        if self.cancelled:
            self.drop_cancelled()
        state = self.state
        state.now_s = now_s = to_s(now_ns)
        if state.loading is not None:
            state.loading.after_step()
        limits = self.config.batching.limits(self.view, now_s)
        if state.in_flight:
            elsewhere = state.running_requests - len(state.running)
            limits = replace(limits, max_running_requests=max(limits.max_running_requests - elsewhere, 0))
        self._slots = limits.max_running_requests
        joined: list[Request] = []
        if self.arriving is not None:
            joined = self.arriving.join()
            self.arriving.give_room(self._slots)
            limits = replace(limits, max_running_requests=max(self._slots - len(self.arriving.under_way), 0))
        displaced: list[Request] = []
        if self._displacement is not None and state.queue_is_next():
            displaced = self._displacement.make_room(limits, now_s)
        plan = self._fill(limits, now_ns)
        if not (limits.decode or plan.chunks or plan.preempted or plan.dropped) and (
            state.pool.size or state.some_are_away()
        ):
            # Nobody could be admitted after all: rather decode than do nothing.
            limits = replace(limits, decode=True)
            loading = plan.loading
            plan = self._fill(limits, now_ns)
            plan.loading = [*loading, *plan.loading]
        if displaced:
            plan.preempted = [*displaced, *plan.preempted]
        if joined:
            plan.swapped_in = [*joined, *plan.swapped_in]
        self._stability.settle(plan, limits)
        if state.ending and self.arriving is not None and self.arriving.wanting:
            plan.stable_steps = 1  # there may be room once they are released
        if self._copies:
            plan.copies, self._copies = self._copies, []
        if state.ending:
            plan.released = [*plan.released, *state.release_all_ended()]
        state.last_plan = plan
        return plan

    def _fill(self, limits: StepLimits, now_ns: int) -> BatchPlan:
        state = self.state
        plan = self._fill_running(limits) or fill_under_contention(state, limits, now_ns, self.config.preemption_mode)
        if state.generates_for_others:
            self._publish_generated(plan)
        contended = plan.preempted or plan.dropped or plan.short_of_memory
        if contended or (self._some_go_before and not admit_those_before(state, plan, limits, now_ns)):
            return plan
        if limits.admit and state.waiting.size:
            admit(state, plan, limits, now_ns)
        return plan

    def _publish_generated(self, plan: BatchPlan) -> None:
        """Let others find the blocks that the planned step fills with what was generated, as far as that is known."""
        left_out = {request.number for request in plan.stalled}
        for number, request in self.state.generates_for_others.items():
            if plan.decoding and number not in left_out:
                self.memory.publish_generated(request, request.tokens_in_memory + 1 - self.config.ends_late)

    def _fill_running(self, limits: StepLimits) -> BatchPlan | None:
        """Serve all running requests, or None if budget or memory may not suffice for all of them."""
        state, pool, memory = self.state, self.state.pool, self.memory
        if memory.partitioned:
            return None
        decoding, blocks = (pool.size, pool.blocks_due()) if limits.decode else (0, 0)
        budget = limits.max_batched_tokens - decoding
        if budget < 0 or not memory.can_allocate(blocks):
            return None
        plan = BatchPlan(decoding)
        pool_blocks = blocks
        for request in state.prefilling.values():
            wanted = min(request.tokens_to_compute, limits.max_chunk_tokens)
            if wanted > budget and request.admission < state.latest_decoding_admission:
                return None
            tokens = min(wanted, budget)
            if tokens == 0:
                break
            budget -= tokens
            blocks += memory.blocks_to_grow(request.computed_tokens, tokens)
            plan.add_chunk(request, tokens)
        if blocks > pool_blocks and not memory.can_allocate(blocks):
            return None
        if pool_blocks:
            memory.allocate(pool_blocks)
        for request, tokens, _ in plan.chunks:
            memory.grow(request, tokens)
        return plan

    def commit(self, plan: BatchPlan, result: StepResult, now_ns: int) -> Committed:
        """Note what came of a plan, whose steps have ended by now; memory is given back in the order of ``ended``."""
        state = self.state
        if state.groups is not None:
            state.groups.took(plan, sum(map(int, result.durations_ns)))
        if plan.decoding:
            state.commit_decodes(plan, len(result.durations_ns))
        used_blocks = self.memory.total_blocks - self.memory.free_blocks
        prefilled: Sequence[Request] = state.commit_chunks(plan) if plan.chunks else ()
        for request in prefilled:
            request.known_output_tokens += 1
            if request.first_token_ns == UNSET:
                request.first_token_ns = now_ns
        for request in result.ended:
            self._finish(request, now_ns)
        decoding: Sequence[Request] = ()
        if prefilled:
            decoding = [request for request in prefilled if state.goes_on(request)]
            for request in decoding:
                state.start_decoding(request)
        return Committed(result.ended, prefilled, decoding, used_blocks)

    def _finish(self, request: Request, now_ns: int) -> None:
        """Free what a complete request holds, and let policies learn from it."""
        self.state.finish(request, keeps_memory=self.held is not None)
        if self.held is not None:
            self.held[request.number] = request
        self._learn(request, now_ns)

    def _learn(self, request: Request, now_ns: int) -> None:
        """Let policies learn from a complete request, unless nobody waits for it any more."""
        if self.cancelled and self.cancelled.pop(request.number, None) is not None:
            return
        tokens = request.known_output_tokens
        for predictor in self._predictors:
            predictor.finished(ReadOnlyRequest(request), tokens)
        if self.config.batching.hears_finished:
            view = ReadOnlyRequest(request)
            tpot_s = to_s(now_ns - request.first_token_ns) / (tokens - 1) if tokens > 1 else None
            self.config.batching.finished(view, to_s(request.first_token_ns - request.arrival_ns), tpot_s)

    def fork(self, parent: Request, child: Request, now_ns: int) -> bool:
        """Let ``child`` go on from where a decoding request is, between two steps; False if there is no room for it.

        The child, which was never submitted, then has all tokens of its parent but the latest, which is its own, and
        decodes. What must be copied for it is in the next plan. If there is no room, it can be submitted as any other.
        """
        state, config, view = self.state, self.config, ReadOnlyRequest(child)
        if parent.pool is None or state.in_flight or len(state.running) >= self._slots:
            return False
        if not self.memory.can_fork(parent):
            return False
        if config.batching.filters_admission and not config.batching.accepts(view, len(state.running)):
            return False
        self._copies += self.memory.fork(parent, child)
        if config.ordering.hears_admitted:
            config.ordering.admitted(view, to_s(now_ns))
        state.run(child, now_ns)
        child.computed_tokens = parent.tokens_in_memory
        child.cached_tokens = min(parent.prompt_tokens, child.computed_tokens)
        child.known_output_tokens = parent.generated_tokens
        child.first_token_ns = parent.first_token_ns
        if state.groups is not None:
            state.groups.group_of(child).admitted(child)
        state.start_decoding(child)
        return True

    def steps_before_shortage(self, limit: int) -> int:
        """How many steps like the one just planned, itself included, memory has room for; at most ``limit``."""
        return 1 + self.state.pool.steps_within(self.memory.free_blocks, limit - 1, after=1)

    def allocate_next_step(self) -> None:
        """Do for the next of several like steps what planning it would have done."""
        self.memory.allocate(self.state.pool.blocks_due())

    def scheduled(self, plan: BatchPlan) -> Iterator[tuple[Request, int]]:
        """Each request of a plan just made with its new tokens, in scheduling order; walks the whole batch."""
        chunk_tokens = {chunk.request.number: chunk.tokens for chunk in plan.chunks}
        left_out = {request.number for request in plan.stalled}
        for number, request in self.state.running.items():
            if number in chunk_tokens:
                yield request, chunk_tokens[number]
            elif plan.decoding and request.pool is not None and number not in left_out:
                yield request, 1
