"""What policies see of a scheduler between two steps."""

from collections import deque
from collections.abc import Callable

from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.memory import KVMemory
from simcore.scheduling.loading import Loading
from simcore.scheduling.swapping import Swapping
from simcore.scheduling.waiting_queue import WaitingQueue


class SchedulerView:
    """The ``ReplicaView`` of policies, over the state of the scheduler that extends it."""

    memory: KVMemory
    incoming: deque[tuple[int, Request]]
    """Requests that the scheduler does not see yet, each with the time it came."""
    waiting: WaitingQueue
    running: dict[int, Request]
    prefilling: dict[int, Request]
    pool: DecodePool
    loading: Loading | None
    swapping: Swapping | None
    now_s: float
    lanes: "tuple[SchedulerView, ...]" = ()
    """The schedulers of all batches that a replica has in flight, where it has several."""
    step_price: Callable[[BatchPlan], float] | None
    """Seconds that a step takes, where somebody can tell."""

    @property
    def waiting_requests(self) -> int:
        """Requests that wait to run: in the queue or before it, for their prefix to be loaded, or in swap space."""
        waiting = self.waiting.size + len(self.incoming)
        if self.loading is not None:
            waiting += self.loading.size
        return waiting if self.swapping is None else waiting + len(self.swapping.away)

    @property
    def queued_requests(self) -> int:
        """Requests in the queue, and those whose prefix is loaded."""
        return self.waiting.size + (0 if self.loading is None else len(self.loading.ready))

    @property
    def waiting_tokens(self) -> int:
        """Tokens that requests in the queue have to compute."""
        return self.waiting.tokens

    @property
    def running_requests(self) -> int:
        """Requests that run: they hold KV memory and a slot."""
        return sum(len(lane.running) for lane in self.lanes) if self.lanes else len(self.running)

    @property
    def decoding_requests(self) -> int:
        """Requests whose prompt is done."""
        return self.pool.size

    @property
    def decode_steps(self) -> int:
        """Steps so far in which running requests decoded, of all batches in flight."""
        return sum(lane.pool.steps for lane in self.lanes) if self.lanes else self.pool.steps

    @property
    def oldest_arrival_s(self) -> float | None:
        """When the request that is next to be admitted arrived."""
        request = self._next()
        return None if request is None else request.arrival_s

    @property
    def next_blocks(self) -> int | None:
        """KV blocks that the request that is next to be admitted needs."""
        request = self._next()
        if request is None:
            return None
        if request.computed_tokens:
            return self.memory.blocks_to_grow(request.computed_tokens, request.tokens_to_compute)
        return self.blocks_to_admit(request)

    def _next(self) -> Request | None:
        """The request to admit next: nobody while some are swapped out."""
        if self.queue_is_next():
            return self.waiting.first(self.now_s)
        if self.loading is not None and self.loading.ready and not self.some_are_away():
            return self.loading.ready[0]
        return None

    def queue_is_next(self) -> bool:
        """Whether somebody is in the queue and nobody goes before."""
        ready = self.loading is not None and self.loading.ready
        return self.waiting.size > 0 and not ready and not self.some_are_away()

    def some_are_away(self) -> bool:
        """Whether some request is swapped out."""
        return self.swapping is not None and len(self.swapping.away) > 0

    @property
    def free_blocks(self) -> int:
        """KV blocks that nobody holds."""
        return self.memory.free_blocks

    @property
    def total_blocks(self) -> int:
        """KV blocks in all."""
        return self.memory.total_blocks

    def step_s(self, prompt_tokens: int) -> float:
        """Seconds that a step takes in which all that decode do, and that prefills so much of the next prompt."""
        if self.step_price is None:
            raise AssertionError("nobody prices the steps of this scheduler")
        plan = BatchPlan(self.pool.size)
        request = next(iter(self.prefilling.values()), None)
        if request is None and self.waiting.size:
            request = self.waiting.first(self.now_s)
        if request is not None and prompt_tokens:
            plan.add_chunk(request, prompt_tokens)
        return self.step_price(plan)

    def blocks_to_admit(self, request: Request) -> int:
        """Free blocks that a waiting request needs for all its known tokens."""
        _, shared_blocks = self.memory.cached_prefix(request)
        return self.memory.most_blocks(request.tokens_to_compute, request) - shared_blocks
