"""A replica for each session."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from policies.bounds import check_counts
from policies.routing import LoadAware
from policies.views import RoutedRequestView, RouterView


@dataclass(slots=True)
class SessionSticky(LoadAware):
    """Send all requests of a session where its first went: to the replica that then had the fewest requests.

    A session whose replica takes no requests moves for good. A request of no session goes to the replica with the
    fewest. The `most_sessions` used last are remembered.

    Source: session affinity of HAProxy and other load balancers.
    """

    most_sessions: int = 1_000_000
    _homes: dict[int, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_counts(self, "most_sessions")

    def choose(self, request: RoutedRequestView, replicas: Sequence[RouterView]) -> int:
        """The session's, if it has one."""
        loads, homes, session = self.loads(replicas), self._homes, request.session
        if session is None:
            return loads.least
        chosen = homes.pop(session, None)
        if chosen is None or not loads.is_open(chosen):
            chosen = loads.least
        homes[session] = chosen
        if len(homes) > self.most_sessions:
            del homes[next(iter(homes))]
        return chosen
