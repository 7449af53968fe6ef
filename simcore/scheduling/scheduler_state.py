"""The requests of a scheduler: which wait, which run, what they hold, and how they pass from one to the other."""

from collections import deque
from collections.abc import Iterator

from policies.batching import Batching
from policies.ordering import CacheAwareOrdering, GroupOrdering, Ordering
from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.request import UNSET, Request
from simcore.memory import KVMemory
from simcore.scheduling.cache_aware_queue import CacheAwareQueue
from simcore.scheduling.displacement import Displacement
from simcore.scheduling.grouped_queue import GroupedQueue
from simcore.scheduling.loading import Loading
from simcore.scheduling.scheduler_view import SchedulerView
from simcore.scheduling.swapping import Swapping
from simcore.scheduling.waiting_queue import KeyedQueue, WaitingQueue


class SchedulerState(SchedulerView):
    """Follows requests from the queue to their end, and takes and frees the KV memory that they hold meanwhile.

    A request waits, runs and prefills, runs and decodes, and is complete. Any may be dropped; one that runs may be
    preempted, and then waits again, or is swapped out until it runs on.

    With ``ends_late`` a step is planned before the result of the one before it is known. So who has got its last token
    is ``ending`` for one plan more: it keeps its slot and memory, but is not served again.
    """

    __slots__ = (
        "_admissions",
        "_batching_forgets",
        "_displacement",
        "_frees_window_blocks",
        "_generates_for_others",
        "_last_plan",
        "_latest_decoding_admission",
        "_ordering_forgets",
        "batching",
        "ending",
        "ends_late",
        "groups",
        "incoming",
        "loading",
        "memory",
        "now_s",
        "ordering",
        "pool",
        "prefilling",
        "running",
        "step_price",
        "swapping",
        "waiting",
    )

    def __init__(
        self,
        ordering: Ordering,
        batching: Batching,
        memory: KVMemory,
        window_tokens: tuple[int, ...] = (),
        loading: Loading | None = None,
        swapping: Swapping | None = None,
        ends_late: bool = False,
    ) -> None:
        self.now_s = 0.0
        self.ends_late = ends_late
        self.ending: dict[int, Request] = {}
        self._generates_for_others: dict[int, Request] = {}
        self._last_plan = BatchPlan()
        self.step_price = None
        self.ordering = ordering
        self.batching = batching
        self.memory = memory
        self.loading = loading
        self.swapping = swapping
        self.incoming: deque[tuple[int, Request]] = deque()
        self.running: dict[int, Request] = {}
        self.prefilling: dict[int, Request] = {}
        self.pool = DecodePool(memory.block_size_tokens, window_tokens, memory.blocks_each)
        self.groups: GroupedQueue | None = None
        self.waiting: WaitingQueue
        if isinstance(ordering, GroupOrdering):
            self.waiting = self.groups = GroupedQueue(ordering, self.pool)
        elif isinstance(ordering, CacheAwareOrdering):
            self.waiting = CacheAwareQueue(ordering, memory)
        else:
            self.waiting = KeyedQueue(ordering)
        self._frees_window_blocks = memory.releases
        self._batching_forgets = type(batching).ended is not Batching.ended
        self._ordering_forgets = type(ordering).ended is not Ordering.ended
        self._admissions = 0
        self._latest_decoding_admission = 0
        self._displacement = Displacement(self) if ordering.preemptive else None

    def share(self, first: "SchedulerState") -> None:
        """Fill other batches of the same replica: with its queue, its slots, and its memory already."""
        first.lanes = self.lanes = (*(first.lanes or (first,)), self)
        self.waiting = first.waiting
        for lane in first.lanes:
            lane.lanes = first.lanes

    def submit(self, request: Request, now_s: float) -> None:
        """Enter a request into the queue."""
        self.waiting.push(request, now_s)
        if self.loading is not None and self.loading.tiers.prefetches:
            self.loading.prefetch(request)

    def start(self, request: Request, tokens: int, plan: BatchPlan, now_ns: int) -> None:
        """Let an admitted request run; the plan has its first chunk of ``tokens`` tokens."""
        self._admissions += 1
        request.admission = self._admissions
        if request.first_scheduled_ns == UNSET:
            request.first_scheduled_ns = now_ns
        self.running[request.number] = request
        self.prefilling[request.number] = request
        plan.add_chunk(request, tokens)
        plan.admitted += 1

    def resume(self, request: Request, decoding: bool) -> None:
        """Let a swapped-in request run on where it was."""
        self._admissions += 1
        request.admission = self._admissions
        self.running[request.number] = request
        if self.groups is not None:
            self.groups.group_of(request).admitted(request)
        if decoding:
            self.start_decoding(request, new_tokens=0)
        else:
            self.prefilling[request.number] = request

    def commit_chunks(self, plan: BatchPlan) -> list[Request]:
        """Take note that the plan's prompt chunks are in memory; returns the requests whose prefill is complete."""
        completed = []
        for request, tokens, computed_tokens in plan.chunks:
            request.computed_tokens = computed_tokens + tokens
            if self._frees_window_blocks:
                self.memory.slide(request, computed_tokens)
            self.memory.computed(request)
            if not request.tokens_to_compute:
                del self.prefilling[request.number]
                completed.append(request)
        return completed

    def start_decoding(self, request: Request, new_tokens: int = 1) -> None:
        """Let a request decode whose prefill is complete and whose next token is known, of which ``new_tokens`` is."""
        self._latest_decoding_admission = max(self._latest_decoding_admission, request.admission)
        request.pool = self.pool
        request.origin = self.pool.join(request.computed_tokens)
        if self._frees_window_blocks:
            self.memory.decodes(request)
        if self.groups is not None:
            self.groups.group_of(request).joined(request, new_tokens)
        if self._displacement is not None:
            self._displacement.decodes(request, self.now_s)
        if request.content is not None and request.content.output:
            self._generates_for_others[request.number] = request

    def publish_generated(self, plan: BatchPlan) -> None:
        """Let others find the blocks that the planned step fills with what was generated, as far as that is known."""
        left_out = {request.number for request in plan.stalled}
        for number, request in self._generates_for_others.items():
            if plan.decoding and number not in left_out:
                self.memory.publish_generated(request, request.tokens_in_memory + 1 - self.ends_late)

    def commit_decodes(self, plan: BatchPlan, steps: int) -> None:
        """Take note that the plan's decoding requests gained ``steps`` tokens each."""
        pool = self.pool
        if self._frees_window_blocks:
            for _ in range(steps - 1):
                self._pass_step()
                self.memory.allocate(pool.blocks_due())
            steps = 1
        elif steps > 1:
            blocks = pool.blocks_needed(steps - 1, after=1)
            if blocks:
                self.memory.allocate(blocks)
        for request in plan.stalled:
            if self._frees_window_blocks:
                self.memory.pauses(request)
            request.computed_tokens = pool.leave(request.origin)
        if self._frees_window_blocks:
            self._pass_step()
        else:
            pool.advance(steps)
        for request in plan.stalled:
            request.origin = pool.join(request.computed_tokens)
            if self._frees_window_blocks:
                self.memory.decodes(request)
            if self.groups is not None:
                self.groups.group_of(request).moved(1)
            if self._displacement is not None:
                self._displacement.decodes(request, self.now_s)

    def _pass_step(self) -> None:
        """Take note of one decode step, and take back the blocks that have left windows with it."""
        self.pool.advance(1)
        self.memory.slide_decoding(self.pool)

    def preempt(self, request: Request, now_s: float, granted_tokens: int = 0) -> None:
        """Free what a running request holds and put it back into the queue; its tokens will be computed again.

        One that is ending leaves for good: its last token is on its way.
        """
        if request.number in self.ending:
            request.preemptions += 1
            self._release_ended(request)
            return
        self.take_memory(request, granted_tokens)
        request.computed_tokens = 0
        if self._batching_forgets:
            self.batching.ended(request)
        self.waiting.push(request, now_s)

    def take_memory(self, request: Request, granted_tokens: int) -> None:
        """Free what a running request holds, which will come back for it."""
        self._free(request, False, granted_tokens, comes_back=True)
        self.prefilling.pop(request.number, None)
        request.preemptions += 1

    def send_back(self, request: Request) -> None:
        """Put a request back into the queue that has loaded its prefix but does not run yet."""
        if self.groups is not None:
            self.groups.group_of(request).left(request, decoding=False, finished=False)
        self.memory.release(request, comes_back=True)
        request.computed_tokens = 0
        request.preemptions += 1
        if self._batching_forgets:
            self.batching.ended(request)
        self.waiting.push(request, self.now_s)

    def finish(self, request: Request) -> None:
        """Free what a running request holds, at once or after the next plan: it is complete."""
        if self.ends_late:
            request.unknown_tokens = self._leave(request, True)
            self.ending[request.number] = request
        else:
            self._free(request, True)
            self._forget(request)

    def release_ended(self) -> list[Request]:
        """Free what those hold that were ending when the last step was planned; returns them."""
        ended = list(self.ending.values())
        for request in ended:
            request.unknown_tokens = 0
            self._release_ended(request)
        return ended

    def _release_ended(self, request: Request) -> None:
        self.memory.release(request)
        del self.ending[request.number], self.running[request.number]
        self._forget(request)

    def drop(self, request: Request, granted_tokens: int = 0) -> None:
        """Forget a request, and free what it holds, if anything: it will never be complete.

        ``granted_tokens`` are those that the step being planned had given it.
        """
        if request.number in self.running:
            self.prefilling.pop(request.number, None)
            self._free(request, False, granted_tokens)
        elif self.loading is not None and self.loading.abandon(request):
            if self.groups is not None:
                self.groups.group_of(request).left(request, decoding=False, finished=False)
        else:
            if self.swapping is None or not self.swapping.abandon(request):
                self.waiting.remove(request)
            self.memory.forget(request)
        self._forget(request)

    def _free(self, request: Request, finished: bool, granted_tokens: int = 0, comes_back: bool = False) -> None:
        request.unknown_tokens = self.ends_late and self._in_flight(request)
        self._leave(request, finished)
        self.memory.release(request, granted_tokens, comes_back)
        request.unknown_tokens = 0
        del self.running[request.number]

    def _leave(self, request: Request, finished: bool) -> bool:
        """Take a request out of its group and the decode pool; returns whether it was in that."""
        decoding = request.pool is not None
        if self.groups is not None:
            self.groups.group_of(request).left(request, decoding, finished)
        if decoding:
            request.known_output_tokens = request.generated_tokens
            request.computed_tokens = self.pool.leave(request.origin)
            request.pool = None
            self._generates_for_others.pop(request.number, None)
        return decoding

    def _in_flight(self, request: Request) -> bool:
        """Whether the step planned last decodes a request, so that a plan made meanwhile does not know its result."""
        if request.pool is None or request.generated_tokens == request.known_output_tokens:
            return False
        return self._last_plan.decoding > 0 and request not in self._last_plan.stalled

    def _forget(self, request: Request) -> None:
        """Tell policies that keep books of requests that one is no more."""
        if self._ordering_forgets:
            self.ordering.ended(request)
        if self._batching_forgets:
            self.batching.ended(request)

    def scheduled(self, plan: BatchPlan) -> Iterator[tuple[Request, int]]:
        """Each request of a plan just made with its new tokens, in scheduling order; walks the whole batch."""
        chunk_tokens = {chunk.request.number: chunk.tokens for chunk in plan.chunks}
        left_out = {request.number for request in plan.stalled}
        for number, request in self.running.items():
            if number in chunk_tokens:
                yield request, chunk_tokens[number]
            elif plan.decoding and request.pool is not None and number not in left_out:
                yield request, 1
