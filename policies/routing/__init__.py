"""To which replica a request goes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from policies.views import ReplicaView, RequestView


class Routing(ABC):
    """Picks a replica for each arriving request; a fresh object serves each run, so it may keep state."""

    def check_replicas(self, replicas: int) -> None:
        """Raise ``ValueError`` unless this can choose among so many."""
        return

    @abstractmethod
    def choose(self, request: RequestView, replicas: Sequence[ReplicaView]) -> int:
        """The index into ``replicas``, which is never empty."""
