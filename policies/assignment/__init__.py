"""Which pool serves a request."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from policies.views import PoolView, RoutedRequestView


class Assignment(ABC):
    """Picks a pool for each request; routing then picks among the replicas of that pool alone."""

    def check_pools(self, names: Sequence[str]) -> None:
        """Raise ``ValueError`` unless this can choose among pools of these names."""
        return

    @abstractmethod
    def choose(self, request: RoutedRequestView, pools: Sequence[PoolView]) -> int:
        """The index into ``pools``."""


def check_known(parameter: str, pool: str, names: Sequence[str]) -> None:
    """Raise ``ValueError`` if a parameter names a pool that there is not."""
    if pool not in names:
        raise ValueError(f"{parameter} is {pool!r}, expected one of {', '.join(names)}")


def place_of(pools: Sequence[PoolView], name: str) -> int:
    """The index of the pool of a name."""
    return next(place for place, pool in enumerate(pools) if pool.name == name)
