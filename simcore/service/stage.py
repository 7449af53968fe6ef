"""Replicas that a routing policy picks among."""

from collections.abc import Sequence

from policies.capabilities import check_capabilities
from policies.routing import Routing
from simcore.core.request import ReadOnlyRequest, Request
from simcore.service.replica import Replica
from simcore.service.replica_limits import ReplicaLimits
from simcore.service.router_view import ReplicaAsRouted

Refusals = dict[ReplicaLimits, str | None]


class Stage:
    """Picks a replica for each request; one that the picked replica could never serve goes to the next that can.

    All ``samples`` of a request, which come one after another, go to one replica.
    """

    def __init__(
        self, replicas: Sequence[Replica], limits: Sequence[ReplicaLimits], routing: Routing, samples: int = 1
    ) -> None:
        check_capabilities(type(routing))
        self.replicas = replicas
        self.routing = routing
        self._limits = limits
        self._kinds_of_limits = tuple(dict.fromkeys(limits))
        self._views = [ReplicaAsRouted(replica) for replica in replicas]
        self._samples = samples
        self._latest: tuple[int, int] | None = None

    def refusals(self, request: Request, output_tokens: int) -> Refusals:
        """Why each kind of replica could not serve a request that would generate so much; None where it could."""
        return {limits: limits.refusal(request, output_tokens) for limits in self._kinds_of_limits}

    def pick(self, request: Request, refusals: Refusals) -> int:
        """The place of the replica that takes a request, which some kind does not refuse."""
        whole = request.number // self._samples
        if self._samples == 1 or self._latest is None or self._latest[0] != whole:
            self._latest = whole, self.routing.choose(ReadOnlyRequest(request), self._views)
        place = self._latest[1]
        while refusals[self._limits[place]] is not None:
            place = (place + 1) % len(self._limits)
        if self.routing.follows_requests:
            self.routing.sent(ReadOnlyRequest(request), place)
        return place

    def ended(self, request: Request, place: int) -> None:
        """A request is gone from the replica at a place."""
        if self.routing.follows_requests:
            self.routing.ended(ReadOnlyRequest(request), place)
