"""What admission policies see of the service as a whole."""

from collections.abc import Sequence

from simcore.service.replica import Replica


class ServiceCounts:
    """The ``ServiceView`` of policies, over all replicas that are there now."""

    __slots__ = ("_replicas",)

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self._replicas = replicas

    @property
    def waiting_requests(self) -> int:
        """Requests in the queues of all replicas."""
        return sum(replica.scheduler.view.waiting_requests for replica in self._replicas)

    @property
    def running_requests(self) -> int:
        """Requests that hold KV memory on any replica."""
        return sum(replica.scheduler.view.running_requests for replica in self._replicas)

    @property
    def kv_used_share(self) -> float:
        """Share of the KV blocks not pinned that are in use, on the replica where it is greatest."""
        memories = (replica.scheduler.memory for replica in self._replicas)
        return max(1 - memory.free_blocks / memory.unpinned_blocks for memory in memories)
