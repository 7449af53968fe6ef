"""Which running requests go on elsewhere."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from policies.views import MigrationView, RequestView


class Move(NamedTuple):
    """A request that decodes on one replica, by its place, and is to go on on another."""

    source: int
    target: int
    request: RequestView


class Migration(ABC):
    """Looks at all replicas from time to time and says which requests move.

    A replica gives or takes one request at a time: moves of those that already do are left out.
    """

    @abstractmethod
    def moves(self, replicas: Sequence[MigrationView], now_s: float) -> Sequence[Move]:
        """The moves to begin now."""
