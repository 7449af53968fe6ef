"""Any replica."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from policies.bounds import MOST_SEED, check_range
from policies.chance import uniform
from policies.routing import Routing
from policies.views import RoutedRequestView, RouterView


@dataclass(frozen=True, slots=True)
class Random(Routing):
    """Send each request to a replica drawn by chance, whatever their load; `seed` and the request say which.

    Source: the splitting of a Poisson stream, which leaves one to each replica.
    """

    seed: int = 0

    knows_places: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_range(self, 0, MOST_SEED, "seed")

    def choose(self, request: RoutedRequestView, replicas: Sequence[RouterView]) -> int:
        """One drawn evenly."""
        return int(uniform(self.seed, request.number) * len(replicas))
