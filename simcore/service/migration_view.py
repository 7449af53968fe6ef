"""What migration policies see of a replica."""

from collections.abc import Callable, Iterator

from simcore.core.request import ReadOnlyRequest
from simcore.scheduling.room import next_blocks
from simcore.service.replica import Replica
from simcore.service.router_view import ReplicaAsRouted


class ReplicaToMigrate(ReplicaAsRouted):
    """The ``MigrationView`` of policies, over one replica that has been brought up to date."""

    __slots__ = ("_moving",)

    def __init__(self, replica: Replica, is_moving: Callable[[], bool]) -> None:
        super().__init__(replica)
        self._moving = is_moving

    @property
    def block_tokens(self) -> int:
        """Tokens of one KV block."""
        return self._state.memory.block_size_tokens

    @property
    def next_blocks(self) -> int | None:
        """KV blocks that the request that is next to be admitted needs."""
        return next_blocks(self._state)

    @property
    def decoding(self) -> Iterator[ReadOnlyRequest]:
        """Requests that decode, in the order in which they were admitted."""
        state = self._state
        for request in state.running.values():
            if request.pool is not None and state.goes_on(request):
                yield ReadOnlyRequest(request)

    @property
    def is_moving(self) -> bool:
        """Whether a request is on its way from it or to it."""
        return self._moving()
