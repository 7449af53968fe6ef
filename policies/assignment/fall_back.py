"""A smaller model while the larger one is busy."""

from collections.abc import Sequence
from dataclasses import dataclass

from policies.assignment import Assignment
from policies.bounds import check_counts
from policies.views import PoolView, RoutedRequestView


@dataclass(frozen=True, slots=True)
class FallBack(Assignment):
    """Take the first pool that has fewer than `waiting_requests` in the queues per replica, or else the last.

    Requests of levels below `from_priority` are spared, and go to the first: 0, the most urgent level, spares nobody.

    Source: graceful degradation (Beyer et al., Site Reliability Engineering, 2016, chapter 22).
    """

    waiting_requests: int = 8
    from_priority: int = 0

    def __post_init__(self) -> None:
        check_counts(self, "waiting_requests")
        check_counts(self, "from_priority", least=0)

    def choose(self, request: RoutedRequestView, pools: Sequence[PoolView]) -> int:
        """The first that is not too busy."""
        if request.priority < self.from_priority:
            return 0
        for place, pool in enumerate(pools):
            if pool.waiting_requests < self.waiting_requests * pool.replicas:
                return place
        return len(pools) - 1
