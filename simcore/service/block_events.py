"""What a router is told of the blocks in the prefix caches of replicas, and when."""

from collections import deque
from functools import partial

from policies.routing import Routing
from simcore.core.clock import to_ns
from simcore.memory.block_manager import KVBlockManager
from simcore.service.clock import Clock
from simcore.service.replica import Replica


class BlockEvents:
    """Carries block events from replicas to a routing policy, each of which arrives ``delay_s`` later.

    They are handed over when the policy is about to choose. Of a replica that takes another's place, all is removed
    that the other had.
    """

    def __init__(self, clock: Clock, routing: Routing) -> None:
        self._clock = clock
        self._routing = routing
        self._delay_ns = to_ns(routing.delay_s)
        self._under_way: deque[tuple[int, int, int, bool]] = deque()
        self._stored: dict[int, set[int]] = {}

    def follow(self, place: int, replica: Replica) -> None:
        """Have a replica, from now on the one at a place, report its blocks; one that only counts them has none."""
        for key in sorted(self._stored.get(place, ())):
            self._under_way.append((self._clock.now_ns + self._delay_ns, place, key, False))
        self._stored[place] = set()
        memory = replica.scheduler.memory
        if isinstance(memory, KVBlockManager):
            memory.report_to(partial(self._note, place, self._stored[place]))

    def deliver(self) -> None:
        """Hand over what arrives by now."""
        now_ns, under_way, routing = self._clock.now_ns, self._under_way, self._routing
        while under_way and under_way[0][0] <= now_ns:
            _, place, key, stored = under_way.popleft()
            if stored:
                routing.stored(place, key)
            else:
                routing.removed(place, key)

    def _note(self, place: int, keys: set[int], key: int, stored: bool) -> None:
        if keys is not self._stored[place]:
            return  # of a replica that is there no more
        if stored:
            keys.add(key)
        else:
            keys.remove(key)
        self._under_way.append((self._clock.now_ns + self._delay_ns, place, key, stored))
