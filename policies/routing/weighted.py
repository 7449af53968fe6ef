"""Replicas in turn, by weight."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heapreplace

from policies.bounds import MOST_WEIGHT, check_value
from policies.routing import Routing
from policies.views import RoutedRequestView, RouterView

_LEAST_WEIGHT = 1e-6


@dataclass(slots=True)
class Weighted(Routing):
    """Send each replica requests in proportion to its weight; `weights` names one for each, none for equal ones.

    Source: stride scheduling (Waldspurger and Weihl 1995), which spreads a replica's requests evenly over time.
    """

    weights: tuple[float, ...] = ()
    _next: list[tuple[float, int, int]] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        for place, weight in enumerate(self.weights):
            check_value(f"weights.{place}", weight, _LEAST_WEIGHT, MOST_WEIGHT)

    def check_replicas(self, replicas: int) -> None:
        """There must be a weight for each."""
        if self.weights and len(self.weights) != replicas:
            raise ValueError(f"weights has {len(self.weights)} numbers, expected one for each of {replicas} replicas")

    def choose(self, request: RoutedRequestView, replicas: Sequence[RouterView]) -> int:
        """The one that has got least for its weight."""
        if not self._next:
            self._next = [(1 / self._weight(each), each, 1) for each in range(len(replicas))]
            heapify(self._next)
        _, chosen, turn = self._next[0]
        heapreplace(self._next, ((turn + 1) / self._weight(chosen), chosen, turn + 1))
        return chosen

    def _weight(self, replica: int) -> float:
        return self.weights[replica] if self.weights else 1.0
