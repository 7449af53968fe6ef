"""Replicas that a routing policy picks among."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Protocol

from policies.capabilities import check_capabilities
from policies.routing import Routing
from simcore.core.request import ReadOnlyRequest, Request
from simcore.service.block_events import BlockEvents
from simcore.service.replica import Replica
from simcore.service.replica_limits import ReplicaLimits
from simcore.service.router_view import ReplicaAsRouted

Refusals = dict[ReplicaLimits, str | None]
NONE_UP = "no replica that could serve it was up"
ABSENT = "absent"
"""Why a place takes no requests: there is no replica, or it is not ready, or it is on its way out."""


class StageFollower(Protocol):
    """Whoever keeps books of the requests of a stage."""

    def sent(self, request: Request, place: int) -> None:
        """A request goes to the replica at a place."""

    def ended(self, request: Request, place: int) -> None:
        """A request is gone from there."""


class Stage:
    """Picks a replica for each request; one that the picked replica could never serve goes to the next that can.

    All ``samples`` of a request, which come one after another, go to one replica. Where ``groups`` of places are
    stated, a request stays in that of the replica that is picked for it.
    """

    def __init__(
        self,
        replicas: Sequence[Replica],
        limits: Sequence[ReplicaLimits],
        routing: Routing,
        samples: int = 1,
        groups: Sequence[range] | None = None,
    ) -> None:
        check_capabilities(type(routing))
        self.replicas = list(replicas)
        self.routing = routing
        self.on_opened: Callable[[], None] | None = None
        self.why_none = NONE_UP
        """Why ``pick`` found none when it last did."""
        self.followers: list[StageFollower] = []
        self._mates = [group for group in groups or (range(len(replicas)),) for _ in group]
        self._limits = list(limits)
        self._kinds_of_limits = tuple(dict.fromkeys(limits))
        self._views = [ReplicaAsRouted(replica) for replica in replicas]
        self._samples = samples
        self._closed_for: list[set[str]] = [set() for _ in replicas]
        self._all_up = True
        self._open_places = list(range(len(replicas)))
        self._open_views: list[ReplicaAsRouted] | None = None
        self._latest: tuple[int, int] | None = None
        self.block_events: BlockEvents | None = None
        """Who tells the routing policy of the blocks of replicas, where it wants to know."""

    def refusals(self, request: Request, output_tokens: int) -> Refusals:
        """Why each kind of replica could not serve a request that would generate so much; None where it could."""
        return {limits: limits.refusal(request, output_tokens) for limits in self._kinds_of_limits}

    def is_up(self, place: int) -> bool:
        """Whether the replica at a place takes requests."""
        return not self._closed_for[place]

    @property
    def any_up(self) -> bool:
        """Whether some replica takes requests."""
        return bool(self._open_places)

    def is_closed(self, place: int, reason: str) -> bool:
        """Whether the replica at a place takes no requests for a reason, be it one of several."""
        return reason in self._closed_for[place]

    def is_vacant(self, place: int) -> bool:
        """Whether there is no replica at a place, or one that neither has nor takes requests."""
        return self.is_closed(place, ABSENT) and not self.replicas[place].requests.by_number

    def close(self, place: int, reason: str) -> None:
        """Let the replica at a place take no requests until it is opened for this reason, and for all others."""
        self._closed_for[place].add(reason)
        self._note_open(place)

    def open(self, place: int, reason: str) -> None:
        """Take back one reason for which the replica at a place takes no requests."""
        self._closed_for[place].discard(reason)
        self._note_open(place)

    def open_fully(self, place: int) -> None:
        """Let the replica at a place take requests, whatever there was against it."""
        self._closed_for[place].clear()
        self._note_open(place)

    def _note_open(self, place: int) -> None:
        """Take note that a reason for which the replica at a place takes no requests has come or gone."""
        open_places, is_open = self._open_places, not self._closed_for[place]
        at = bisect_left(open_places, place)
        if is_open != (at < len(open_places) and open_places[at] == place):
            if is_open:
                open_places.insert(at, place)
            else:
                del open_places[at]
            self._all_up = len(open_places) == len(self.replicas)
            self._open_views = None
            self.routing.note_open(place, is_open)
        if is_open and self.on_opened is not None:
            self.on_opened()

    def replace(self, place: int, replica: Replica, like: int | None = None) -> None:
        """Put another replica, which has no requests yet, at a place; its limits are as those at the place ``like``."""
        self.replicas[place] = replica
        if like is not None:
            self._limits[place] = self._limits[like]
        self._views[place] = ReplicaAsRouted(replica)
        self._open_views = None
        if self.block_events is not None:
            self.block_events.follow(place, replica)

    def view(self, place: int) -> ReplicaAsRouted:
        """What policies see of the replica at a place."""
        return self._views[place]

    def _fewest_requests(self, refusals: Refusals, near: int, apart_from: int | None = None) -> int | None:
        """Of the replicas near a place that are up and do not refuse a request, that with the fewest; None without."""
        open_to = [
            place
            for place in self._mates[near]
            if self.is_up(place) and refusals[self._limits[place]] is None and place != apart_from
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
            self._latest = whole, self._choice(request)
        place = self._latest[1]
        if refusals[self._limits[place]] is not None:
            mates = self._mates[place]
            turns = (*range(place + 1, mates.stop), *range(mates.start, place))
            serving = next((each for each in turns if refusals[self._limits[each]] is None), None)
            if serving is None:
                self.why_none = refusals[self._limits[place]] or NONE_UP
                return None
            place = serving
        if not self._all_up and self._closed_for[place]:
            found = self._fewest_requests(refusals, place)
            if found is None:
                self.why_none = NONE_UP
                return None
            place = found
        self._note_sent(request, place)
        return place

    def _note_sent(self, request: Request, place: int) -> None:
        if self.routing.follows_requests:
            self.routing.sent(ReadOnlyRequest(request), place)
        for follower in self.followers:
            follower.sent(request, place)

    def _choice(self, request: Request) -> int:
        """The place that the policy picks; one that knows no places picks among those that are open."""
        view = ReadOnlyRequest(request)
        if self._all_up or self.routing.knows_places or not self._open_places:
            return self.routing.choose(view, self._views)
        if self._open_views is None:
            self._open_views = [self._views[place] for place in self._open_places]
        return self._open_places[self.routing.choose(view, self._open_views)]

    def pick_other(self, request: Request, output_tokens: int, apart_from: int) -> int | None:
        """The place of another replica that takes a copy of a request: that with the fewest; None if none is up."""
        place = self._fewest_requests(self.refusals(request, output_tokens), apart_from, apart_from)
        if place is not None:
            self._note_sent(request, place)
        return place

    def moved(self, request: Request, source: int, target: int) -> None:
        """A request goes on at another place."""
        self.ended(request, source)
        self._note_sent(request, target)

    def ended(self, request: Request, place: int) -> None:
        """A request is gone from the replica at a place."""
        if self.routing.follows_requests:
            self.routing.ended(ReadOnlyRequest(request), place)
        for follower in self.followers:
            follower.ended(request, place)

    @property
    def hears_ends(self) -> bool:
        """Whether anybody wants to know that a request has ended."""
        return self.routing.follows_requests or bool(self.followers)
