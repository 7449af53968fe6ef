"""What routing policies see of a replica."""

from collections.abc import Sequence

from policies.views import RoutedRequestView
from simcore.core.clock import to_s
from simcore.core.request import ReadOnlyRequest, request_behind
from simcore.memory.block_manager import KVBlockManager
from simcore.scheduling.state import SchedulerState
from simcore.service.replica import Replica


class ReplicaAsRouted:
    """The ``RouterView`` of policies, over one replica.

    A replica may be in the middle of a jump over many steps. What changes with each step is brought up to date when it
    is asked for, so that a replica nobody asks costs nothing.
    """

    __slots__ = ("_replica", "_state")

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._state = replica.scheduler.state

    @property
    def _batches(self) -> tuple[SchedulerState, ...]:
        return self._state.in_flight or (self._state,)

    @property
    def waiting_requests(self) -> int:
        """Requests taken in that do not run."""
        return self._state.waiting_requests

    @property
    def waiting_tokens(self) -> int:
        """Tokens that the requests in the queue have to compute, those among them that the scheduler will see later."""
        state = self._state
        return state.waiting.tokens + sum(request.tokens_to_compute for _, request in state.incoming)

    @property
    def running_requests(self) -> int:
        """Requests that run, in all batches in flight."""
        return self._state.running_requests

    @property
    def running_tokens(self) -> int:
        """Tokens in KV memory of those that run."""
        self._replica.catch_up()
        return sum(
            batch.pool.context_tokens + sum(request.computed_tokens for request in batch.prefilling.values())
            for batch in self._batches
        )

    @property
    def queue_delay_s(self) -> float:
        """Seconds that the request waited which ran for the first time last."""
        return to_s(self._state.latest_queue_ns)

    @property
    def free_blocks(self) -> int:
        """KV blocks that nobody holds."""
        self._replica.catch_up()
        return self._state.memory.free_blocks

    @property
    def total_blocks(self) -> int:
        """KV blocks in all."""
        return self._state.memory.total_blocks

    def prefix_keys(self, request: RoutedRequestView) -> Sequence[int]:
        """A key for each full block of a request's prompt, as the prefix cache has them."""
        assert isinstance(request, ReadOnlyRequest)
        memory = self._state.memory
        return memory.prompt_keys(request_behind(request)) if isinstance(memory, KVBlockManager) else ()

    def cached_tokens(self, request: RoutedRequestView) -> int:
        """Tokens of a request's prompt in the prefix cache; nothing of the look-up is kept."""
        assert isinstance(request, ReadOnlyRequest)
        self._replica.catch_up()
        memory, asked = self._state.memory, request_behind(request)
        tokens, _ = memory.cached_prefix(asked)
        memory.forget(asked)
        return tokens
