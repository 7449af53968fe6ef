"""To which replica a request goes."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from policies.routing.loads import Loads
from policies.views import RoutedRequestView, RouterView


class Routing(ABC):
    """Picks a replica for each arriving request; a fresh object serves each run, so it may keep state.

    The work of a choice should not grow with the number of replicas: a policy that wants to know the least loaded of
    all keeps books, as a ``LoadAware`` one does, instead of asking each.
    """

    paired_hooks: ClassVar[Mapping[str, str]] = {
        "sent": "follows_requests",
        "ended": "follows_requests",
        "stored": "follows_blocks",
        "removed": "follows_blocks",
    }
    follows_requests: ClassVar[bool] = False
    """Whether ``sent`` and ``ended`` are told of every request that a replica takes in, and of its end."""
    knows_places: ClassVar[bool] = True
    """Whether a replica's index means the same in every call. If not, only those that take requests are to choose from.

    If it does, a request for a replica that takes none goes to the one with the fewest requests.
    """

    follows_blocks: ClassVar[bool] = False
    """Whether ``stored`` and ``removed`` are told of the blocks in prefix caches, ``delay_s`` after it happened."""
    delay_s: float = 0.0

    def check_replicas(self, replicas: int) -> None:
        """Raise ``ValueError`` unless this can choose among so many."""
        return

    @abstractmethod
    def choose(self, request: RoutedRequestView, replicas: Sequence[RouterView]) -> int:
        """The index into ``replicas``, which is never empty."""

    def sent(self, request: RoutedRequestView, replica: int) -> None:
        """Take note that a replica takes in a request. Of several samples of one request each is told of."""

    def ended(self, request: RoutedRequestView, replica: int) -> None:
        """Take note that a request is gone from a replica: complete, dropped, or given up by its client."""

    def note_open(self, replica: int, is_open: bool) -> None:
        """Take note that a replica takes requests from now on, or none."""
        return

    def stored(self, replica: int, key: int) -> None:
        """Take note that a replica has a block of this key in its prefix cache."""

    def removed(self, replica: int, key: int) -> None:
        """Take note that a replica has given up its last block of this key."""


@dataclass(slots=True)
class LoadAware(Routing):
    """A routing policy that keeps the load of each replica: by default the requests sent there that have not ended."""

    follows_requests: ClassVar[bool] = True
    _loads: Loads | None = field(default=None, init=False, repr=False)
    _closed: set[int] = field(default_factory=set, init=False, repr=False)

    def load(self, request: RoutedRequestView) -> int:
        """What a request adds to the load of its replica until it ends."""
        return 1

    def loads(self, replicas: Sequence[RouterView]) -> Loads:
        """The books, opened with the first request."""
        if self._loads is None:
            self._loads = Loads(len(replicas), self._closed)
        return self._loads

    def note_open(self, replica: int, is_open: bool) -> None:
        """Open or close its books."""
        if is_open:
            self._closed.discard(replica)
        else:
            self._closed.add(replica)
        if self._loads is not None:
            self._loads.note_open(replica)

    def sent(self, request: RoutedRequestView, replica: int) -> None:
        """Add the request."""
        if self._loads is not None:
            self._loads.grow(replica, self.load(request))

    def ended(self, request: RoutedRequestView, replica: int) -> None:
        """Take the request off."""
        if self._loads is not None:
            self._loads.shrink(replica, self.load(request))
