"""The replica with the fewest requests."""

from collections.abc import Sequence
from dataclasses import dataclass

from policies.routing import LoadAware
from policies.views import RoutedRequestView, RouterView


@dataclass(slots=True)
class LeastRequests(LoadAware):
    """Send each request to the replica with the fewest that were sent there and have not ended.

    Among equals the one that got a request longest ago is next.

    Source: `least_conn` of nginx; join the shortest queue (Winston 1977).
    """

    def choose(self, request: RoutedRequestView, replicas: Sequence[RouterView]) -> int:
        """The one with the fewest."""
        return self.loads(replicas).least
