"""The better of two replicas drawn by chance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from policies.bounds import MOST_SEED, check_range
from policies.chance import uniform
from policies.routing import Routing
from policies.views import RoutedRequestView, RouterView


@dataclass(frozen=True, slots=True)
class PowerOfTwo(Routing):
    """Draw two replicas by chance and send the request to the one with fewer requests, waiting and running.

    Of two with as many the one drawn first gets it.

    Source: Vvedenskaya, Dobrushin and Karpelevich 1996; Mitzenmacher, IEEE TPDS 2001.
    """

    seed: int = 0

    knows_places: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_range(self, 0, MOST_SEED, "seed")

    def choose(self, request: RoutedRequestView, replicas: Sequence[RouterView]) -> int:
        """The one of two different replicas with fewer requests."""
        count = len(replicas)
        first = int(uniform(self.seed, request.number, 0) * count)
        if count == 1:
            return first
        second = (first + 1 + int(uniform(self.seed, request.number, 1) * (count - 1))) % count
        return second if _requests(replicas[second]) < _requests(replicas[first]) else first


def _requests(replica: RouterView) -> int:
    return replica.waiting_requests + replica.running_requests
