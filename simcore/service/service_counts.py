"""What admission policies see of the service as a whole."""

from collections.abc import Sequence

from policies.views import ReplicaView
from simcore.memory import KVMemory


class ServiceCounts:
    """The ``ServiceView`` of policies, over the views of all replicas and their memory."""

    __slots__ = ("_memories", "_views")

    def __init__(self, views: Sequence[ReplicaView], memories: Sequence[KVMemory]) -> None:
        self._views = views
        self._memories = memories

    @property
    def waiting_requests(self) -> int:
        """Requests in the queues of all replicas."""
        return sum(view.waiting_requests for view in self._views)

    @property
    def running_requests(self) -> int:
        """Requests that hold KV memory on any replica."""
        return sum(view.running_requests for view in self._views)

    @property
    def kv_used_share(self) -> float:
        """Share of the KV blocks not pinned that are in use, on the replica where it is greatest."""
        return max(1 - memory.free_blocks / memory.unpinned_blocks for memory in self._memories)
