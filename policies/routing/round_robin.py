"""Each replica in turn."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from policies.routing import Routing
from policies.views import RoutedRequestView, RouterView


@dataclass(slots=True)
class RoundRobin(Routing):
    """Send each request to the replica after the one that got the last, whatever their load.

    Source: the default of nginx and other load balancers.
    """

    _next: int = field(default=0, init=False, repr=False)

    knows_places: ClassVar[bool] = False

    def choose(self, request: RoutedRequestView, replicas: Sequence[RouterView]) -> int:
        """The next in turn."""
        chosen = self._next % len(replicas)
        self._next = chosen + 1
        return chosen
