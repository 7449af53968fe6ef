"""All pools whose replicas come and go."""

from collections.abc import Mapping
from dataclasses import dataclass

from simcore.service.fleet import Fleet
from simcore.service.waiting_room import WaitingRoom


@dataclass(frozen=True, slots=True)
class Fleets:
    """What starts and stops replicas, by the number of the pool; and where requests wait while none is up."""

    of_pools: Mapping[int, Fleet]
    room: WaitingRoom

    @property
    def expect(self) -> bool:
        """Whether a replica is on its way, in whichever pool."""
        return any(fleet.expects for fleet in self.of_pools.values())

    def begin(self) -> None:
        """Have the first replicas there."""
        for fleet in self.of_pools.values():
            fleet.seen.waiting_outside = lambda: len(self.room)
            fleet.begin()
