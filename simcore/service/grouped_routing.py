"""Routing within the pool that a policy assigns to a request."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from policies.assignment import Assignment
from policies.routing import Routing
from policies.views import RoutedRequestView, RouterView


@dataclass(slots=True)
class RoutedPool:
    """The ``PoolView`` of policies: the replicas at ``places``, and the policy that picks among them."""

    name: str
    places: range
    routing: Routing
    views: Sequence[RouterView] = ()
    closed: set[int] = field(default_factory=set)
    """Places of replicas that take no requests."""

    @property
    def replicas(self) -> int:
        """How many take requests; all of them where none does."""
        return len(self.places) - len(self.closed) or len(self.places)

    @property
    def waiting_requests(self) -> int:
        """Requests in the queues of its replicas."""
        return sum(view.waiting_requests for view in self.views)


@dataclass(slots=True)
class GroupedRouting(Routing):
    """First the pool, then the replica, each by a policy; every pool has a routing policy of its own."""

    assignment: Assignment
    pools: Sequence[RoutedPool]
    _pool_at: list[RoutedPool] = field(init=False)

    follows_requests: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._pool_at = [pool for pool in self.pools for _ in pool.places]

    def choose(self, request: RoutedRequestView, replicas: Sequence[RouterView]) -> int:
        """The place among the replicas of all pools."""
        for pool in self.pools:
            pool.views = replicas[pool.places.start : pool.places.stop]
        pool = self.pools[self.assignment.choose(request, self.pools)]
        open_places = [place for place in pool.places if place not in pool.closed] if pool.closed else ()
        if pool.routing.knows_places or not open_places:
            return pool.places.start + pool.routing.choose(request, pool.views)
        return open_places[pool.routing.choose(request, [replicas[place] for place in open_places])]

    def note_open(self, replica: int, is_open: bool) -> None:
        """Tell the policy of the replica's pool."""
        pool = self._pool_at[replica]
        if is_open:
            pool.closed.discard(replica)
        else:
            pool.closed.add(replica)
        pool.routing.note_open(replica - pool.places.start, is_open)

    def sent(self, request: RoutedRequestView, replica: int) -> None:
        """Tell the policy of the replica's pool."""
        pool = self._pool_at[replica]
        if pool.routing.follows_requests:
            pool.routing.sent(request, replica - pool.places.start)

    def ended(self, request: RoutedRequestView, replica: int) -> None:
        """Tell the policy of the replica's pool."""
        pool = self._pool_at[replica]
        if pool.routing.follows_requests:
            pool.routing.ended(request, replica - pool.places.start)
