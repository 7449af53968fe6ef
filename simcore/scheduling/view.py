"""What policies see of a scheduler between two steps: to be read, and no more."""

from collections.abc import Callable, Collection, Iterator

from simcore.core.batch_plan import BatchPlan
from simcore.core.decode_pool import DecodePool
from simcore.core.request import ReadOnlyRequest, Request
from simcore.scheduling.room import next_blocks
from simcore.scheduling.state import SchedulerState

StepPrice = Callable[[BatchPlan, DecodePool], float]
"""Seconds that a step of a plan would take, given the requests that decode."""


class RunningRequests:
    """The ``RunningView`` of policies: running requests in the order in which they were admitted."""

    __slots__ = ("_requests",)

    def __init__(self, requests: Collection[Request]) -> None:
        self._requests = requests

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[ReadOnlyRequest]:
        return map(ReadOnlyRequest, self._requests)

    def __reversed__(self) -> Iterator[ReadOnlyRequest]:
        return map(ReadOnlyRequest, reversed(self._requests))  # type: ignore[call-overload]  # a list or a dict's values


class SchedulerView:
    """The ``ReplicaView`` of policies, over the state of one scheduler."""

    __slots__ = ("_state", "_step_price")

    def __init__(self, state: SchedulerState, step_price: StepPrice | None) -> None:
        self._state = state
        self._step_price = step_price

    @property
    def waiting_requests(self) -> int:
        """Requests that wait to run: in the queue or before it, for their prefix to be loaded, or in swap space."""
        return self._state.waiting_requests

    @property
    def queued_requests(self) -> int:
        """Requests in the queue, and those whose prefix is loaded."""
        loading = self._state.loading
        return self._state.waiting.size + (0 if loading is None else len(loading.ready))

    @property
    def waiting_tokens(self) -> int:
        """Tokens that requests in the queue have to compute."""
        return self._state.waiting.tokens

    @property
    def running_requests(self) -> int:
        """Requests that run: they hold KV memory and a slot."""
        return self._state.running_requests

    @property
    def decoding_requests(self) -> int:
        """Requests whose prompt is done."""
        return self._state.pool.size

    @property
    def prefilling_requests(self) -> int:
        """Running requests whose prompt is unfinished."""
        return len(self._state.prefilling)

    @property
    def decode_steps(self) -> int:
        """Steps so far in which running requests decoded, of all batches in flight."""
        in_flight = self._state.in_flight
        return sum(batch.pool.steps for batch in in_flight) if in_flight else self._state.pool.steps

    @property
    def oldest_arrival_s(self) -> float | None:
        """When the request that is next to be admitted arrived."""
        request = self._state.next_request()
        return None if request is None else request.arrival_s

    @property
    def next_blocks(self) -> int | None:
        """KV blocks that the request that is next to be admitted needs."""
        return next_blocks(self._state)

    @property
    def free_blocks(self) -> int:
        """KV blocks that nobody holds."""
        return self._state.memory.free_blocks

    @property
    def total_blocks(self) -> int:
        """KV blocks in all."""
        return self._state.memory.total_blocks

    def step_s(self, prompt_tokens: int) -> float:
        """Seconds that a step takes in which all that decode do, and that prefills so much of the next prompt."""
        if self._step_price is None:
            raise AssertionError("nobody prices the steps of this scheduler")
        state = self._state
        plan = BatchPlan(state.pool.size)
        request = next(iter(state.prefilling.values()), None)
        if request is None and state.waiting.size:
            request = state.waiting.first(state.now_s)
        if request is not None and prompt_tokens:
            plan.add_chunk(request, prompt_tokens)
        return self._step_price(plan, state.pool)
