"""Replicas that a routing policy picks among."""

from collections.abc import Sequence

from policies.capabilities import check_capabilities
from policies.routing import Routing
from simcore.core.request import ReadOnlyRequest, Request
from simcore.service.block_events import BlockEvents
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
        self.replicas = list(replicas)
        self.routing = routing
        self._limits = limits
        self._kinds_of_limits = tuple(dict.fromkeys(limits))
        self._views = [ReplicaAsRouted(replica) for replica in replicas]
        self._samples = samples
        self._closed_for: list[set[str]] = [set() for _ in replicas]
        self._all_up = True
        self._latest: tuple[int, int] | None = None
        self.block_events: BlockEvents | None = None
        """Who tells the routing policy of the blocks of replicas, where it wants to know."""

    def refusals(self, request: Request, output_tokens: int) -> Refusals:
        """Why each kind of replica could not serve a request that would generate so much; None where it could."""
        return {limits: limits.refusal(request, output_tokens) for limits in self._kinds_of_limits}

    def is_up(self, place: int) -> bool:
        """Whether the replica at a place takes requests."""
        return not self._closed_for[place]

    def is_closed(self, place: int, reason: str) -> bool:
        """Whether the replica at a place takes no requests for a reason, be it one of several."""
        return reason in self._closed_for[place]

    def close(self, place: int, reason: str) -> None:
        """Let the replica at a place take no requests until it is opened for this reason, and for all others."""
        self._closed_for[place].add(reason)
        self._all_up = False

    def open(self, place: int, reason: str) -> None:
        """Take back one reason for which the replica at a place takes no requests."""
        self._closed_for[place].discard(reason)
        self._all_up = not any(self._closed_for)

    def replace(self, place: int, replica: Replica) -> None:
        """Put another replica, which has no requests yet, at a place."""
        self.replicas[place] = replica
        self._views[place] = ReplicaAsRouted(replica)
        if self.block_events is not None:
            self.block_events.follow(place, replica)

    def _fewest_requests(self, refusals: Refusals, apart_from: int | None = None) -> int | None:
        """Of the replicas that are up and do not refuse a request, that with the fewest; None without any."""
        open_to = [
            place
            for place, limits in enumerate(self._limits)
            if self.is_up(place) and refusals[limits] is None and place != apart_from
        ]
        return min(open_to, key=lambda place: len(self.replicas[place].requests.by_number), default=None)

    def pick(self, request: Request, refusals: Refusals) -> int | None:
        """The place of the replica that takes a request, which some kind does not refuse; None if none is up.

        In place of one that is down, that with the fewest requests takes it.
        """
        whole = request.number // self._samples
        if self._samples == 1 or self._latest is None or self._latest[0] != whole:
            if self.block_events is not None:
                self.block_events.deliver()
            self._latest = whole, self.routing.choose(ReadOnlyRequest(request), self._views)
        place = self._latest[1]
        while refusals[self._limits[place]] is not None:
            place = (place + 1) % len(self._limits)
        if not self._all_up and not self.is_up(place):
            found = self._fewest_requests(refusals)
            if found is None:
                return None
            place = found
        if self.routing.follows_requests:
            self.routing.sent(ReadOnlyRequest(request), place)
        return place

    def pick_other(self, request: Request, output_tokens: int, apart_from: int) -> int | None:
        """The place of another replica that takes a copy of a request: that with the fewest; None if none is up."""
        place = self._fewest_requests(self.refusals(request, output_tokens), apart_from)
        if place is not None and self.routing.follows_requests:
            self.routing.sent(ReadOnlyRequest(request), place)
        return place

    def ended(self, request: Request, place: int) -> None:
        """A request is gone from the replica at a place."""
        if self.routing.follows_requests:
            self.routing.ended(ReadOnlyRequest(request), place)
