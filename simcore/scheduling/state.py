"""The requests of a scheduler: which wait, which run, what they hold, and how they pass from one to the other."""

from collections import deque

from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.request import UNSET, ReadOnlyRequest, Request
from simcore.memory import KVMemory
from simcore.scheduling.adapter_slots import AdapterSlots
from simcore.scheduling.config import SchedulerConfig
from simcore.scheduling.grouped_queue import GroupedQueue
from simcore.scheduling.loading import Loading
from simcore.scheduling.queues import waiting_queue
from simcore.scheduling.running_keys import RunningKeys, running_keys
from simcore.scheduling.swapping import Swapping
from simcore.scheduling.waiting_queue import WaitingQueue


class SchedulerState:
    """Follows requests from the queue to their end, and takes and frees the KV memory that they hold meanwhile.

    A request waits, runs and prefills, runs and decodes, and is complete. Any may be dropped; one that runs may be
    preempted, and then waits again, or is swapped out until it runs on.

    ``incoming`` are not to be seen yet, each with the time it came, ``in_flight`` the states of a replica's batches
    where it has several. ``ending`` have got their last token and are released with the next plan. The request that
    ran for the first time last waited ``latest_queue_ns``. Others may say what ``generates_for_others`` say too.
    """

    __slots__ = (
        "_admissions",
        "_frees_window_blocks",
        "adapters",
        "config",
        "ending",
        "generates_for_others",
        "groups",
        "in_flight",
        "incoming",
        "keys",
        "last_plan",
        "latest_decoding_admission",
        "latest_queue_ns",
        "loading",
        "memory",
        "now_s",
        "pool",
        "prefilling",
        "running",
        "swapping",
        "waiting",
    )

    def __init__(
        self, config: SchedulerConfig, memory: KVMemory, loading: Loading | None, swapping: Swapping | None
    ) -> None:
        self.config, self.memory = config, memory
        self.loading, self.swapping = loading, swapping
        self.adapters: AdapterSlots | None = None
        self.now_s = 0.0
        self.incoming: deque[tuple[int, Request]] = deque()
        self.running: dict[int, Request] = {}
        self.prefilling: dict[int, Request] = {}
        self.pool = DecodePool(memory.block_size_tokens, config.window_tokens, memory.blocks_each)
        self.in_flight: tuple[SchedulerState, ...] = ()
        self.ending: dict[int, Request] = {}
        self.generates_for_others: dict[int, Request] = {}
        self.last_plan = BatchPlan()
        self.waiting: WaitingQueue = waiting_queue(config.ordering, memory, self.pool)
        self.groups = self.waiting if isinstance(self.waiting, GroupedQueue) else None
        self.keys: RunningKeys | None = None
        if config.ordering.preemptive:
            self.keys = running_keys(config.ordering, memory, self.running, self.ending, self.prefilling, self.pool)
        self._frees_window_blocks = memory.releases
        self._admissions = 0
        self.latest_decoding_admission = 0
        self.latest_queue_ns = 0

    def share(self, first: "SchedulerState") -> None:
        """Fill other batches of the same replica: with its queue, its slots, and its memory already."""
        first.in_flight = self.in_flight = (*(first.in_flight or (first,)), self)
        self.waiting = first.waiting
        for batch in first.in_flight:
            batch.in_flight = first.in_flight

    @property
    def running_requests(self) -> int:
        """Requests that run, in all batches in flight."""
        return sum(len(batch.running) for batch in self.in_flight) if self.in_flight else len(self.running)

    @property
    def waiting_requests(self) -> int:
        """Requests that wait to run: in the queue or before it, for their prefix to be loaded, or in swap space."""
        waiting = self.waiting.size + len(self.incoming) + (self.loading.size if self.loading else 0)
        return waiting if self.swapping is None else waiting + len(self.swapping.away)

    def some_are_away(self) -> bool:
        """Whether some request is swapped out."""
        return self.swapping is not None and len(self.swapping.away) > 0

    def queue_is_next(self) -> bool:
        """Whether somebody is in the queue and nobody goes before."""
        return self.waiting.size > 0 and not (self.loading and self.loading.ready) and not self.some_are_away()

    def next_request(self) -> Request | None:
        """The request to admit next: nobody while some are swapped out."""
        if self.queue_is_next():
            return self.waiting.first(self.now_s)
        if self.loading is not None and self.loading.ready and not self.some_are_away():
            return self.loading.ready[0]
        return None

    def submit(self, request: Request, now_s: float) -> None:
        """Enter a request into the queue."""
        self.waiting.push(request, now_s)
        if self.loading is not None and self.loading.tiers.prefetches:
            self.loading.prefetch(request)

    def start(self, request: Request, tokens: int, plan: BatchPlan, now_ns: int) -> None:
        """Let an admitted request run; the plan has its first chunk of ``tokens`` tokens."""
        self.run(request, now_ns)
        self.prefilling[request.number] = request
        plan.add_chunk(request, tokens)
        plan.admitted += 1

    def run(self, request: Request, now_ns: int) -> None:
        """Count a request among those that run, as the last to be admitted."""
        self._admissions += 1
        request.admission = self._admissions
        if request.first_scheduled_ns == UNSET:
            request.first_scheduled_ns = now_ns
            (self.in_flight[0] if self.in_flight else self).latest_queue_ns = now_ns - request.arrival_ns
        self.running[request.number] = request

    def resume(self, request: Request, decoding: bool) -> None:
        """Let a swapped-in request run on where it was."""
        self.run(request, request.first_scheduled_ns)
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
        self.latest_decoding_admission = max(self.latest_decoding_admission, request.admission)
        request.pool = self.pool
        request.origin = self.pool.join(request.computed_tokens)
        if self._frees_window_blocks:
            self.memory.decodes(request)
        if self.groups is not None:
            self.groups.group_of(request).joined(request, new_tokens)
        if self.keys is not None:
            self.keys.decodes(request, self.now_s)
        if request.content is not None and request.content.output:
            self.generates_for_others[request.number] = request

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
            if self.keys is not None:
                self.keys.decodes(request, self.now_s)

    def _pass_step(self) -> None:
        """Take note of one decode step, and take back the blocks that have left windows with it."""
        self.pool.advance(1)
        self.memory.slide_decoding(self.pool)

    def preempt(self, request: Request, now_s: float, granted_tokens: int = 0) -> None:
        """Free what a running request holds and queue it to be computed again; one that is ending leaves for good."""
        if request.number in self.ending:
            self.release_ended(request)
            return
        self.take_memory(request, granted_tokens)
        request.computed_tokens = 0
        if self.config.batching.hears_ended:
            self.config.batching.ended(ReadOnlyRequest(request))
        self.waiting.push(request, now_s)

    def take_memory(self, request: Request, granted_tokens: int) -> None:
        """Free what a running request holds, which will come back for it."""
        self._free(request, False, granted_tokens, comes_back=True)
        self.prefilling.pop(request.number, None)
        request.preemptions += 1

    def finish(self, request: Request, keeps_memory: bool = False) -> None:
        """Free what a running request holds, at once or after the next plan, unless it keeps it: it is complete."""
        if keeps_memory:
            self._leave(request, True)
            del self.running[request.number]
            self._forget(request)
        elif self.config.ends_late:
            request.unknown_tokens = self._leave(request, True)
            self.ending[request.number] = request
        else:
            self._free(request, True)
            self._forget(request)

    def goes_on(self, request: Request) -> bool:
        """Whether a request runs and has not got its last token."""
        return request.number in self.running and request.number not in self.ending

    def release_all_ended(self) -> list[Request]:
        """Free what those hold that were ending when the last step was planned; returns them."""
        for request in (ended := list(self.ending.values())):
            request.unknown_tokens = 0
            self.release_ended(request)
        return ended

    def release_ended(self, request: Request) -> None:
        """Free what a request holds that was ending."""
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
        request.unknown_tokens = self.config.ends_late and self._in_flight(request)
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
            self.generates_for_others.pop(request.number, None)
        return decoding

    def _in_flight(self, request: Request) -> bool:
        """Whether the step planned last decodes a request, so that a plan made meanwhile does not know its result."""
        if request.pool is None or request.generated_tokens == request.known_output_tokens:
            return False
        return self.last_plan.decoding > 0 and request not in self.last_plan.stalled

    def _forget(self, request: Request) -> None:
        """Tell policies that keep books of requests that one is no more."""
        if self.config.ordering.hears_ended:
            self.config.ordering.ended(ReadOnlyRequest(request))
        if self.config.batching.hears_ended:
            self.config.batching.ended(ReadOnlyRequest(request))
