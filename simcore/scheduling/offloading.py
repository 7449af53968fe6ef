"""What lies below the GPU memory of one replica, and the links to it."""

from dataclasses import dataclass

from simcore.memory import KVBlockManager, KVMemory
from simcore.memory.link import Link
from simcore.memory.tiers import TierChain
from simcore.scheduling.loading import Loading, RecomputeTime
from simcore.scheduling.swapping import Swapping


@dataclass(frozen=True, slots=True)
class Offloading:
    """Tiers and swap space of one replica, None where a scenario has none, and every link that leads to them."""

    block_bytes: int
    links: tuple[Link, ...] = ()
    tiers: TierChain | None = None
    swapping: Swapping | None = None

    def loading(self, memory: KVMemory, recompute_ns: RecomputeTime | None) -> Loading | None:
        """What loads requests' prefixes from the tiers, None without any; ``recompute_ns`` as ``Loading`` takes it."""
        if self.tiers is None:
            return None
        assert isinstance(memory, KVBlockManager)
        return Loading(self.tiers, memory, recompute_ns)
