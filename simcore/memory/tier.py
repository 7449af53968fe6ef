"""What one tier below GPU memory holds: blocks by their keys, least recently used first."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from policies.horizon import FOREVER
from simcore.memory.link import Link


@dataclass(slots=True)
class Tier:
    """``capacity_blocks`` blocks in CPU memory, or on what hangs below it over links of its own.

    A block takes its place when it sets out for the tier, and is found once it is there. What is still on its way is
    not evicted: if that is the least recently used, the tier takes nothing more. ``write`` leads from CPU memory to the
    tier, ``read`` back; they are None for CPU memory itself.
    """

    name: str
    capacity_blocks: int
    read: Link | None = None
    write: Link | None = None
    _there_ns: OrderedDict[int, int] = field(default_factory=OrderedDict)

    def __len__(self) -> int:
        return len(self._there_ns)

    def holds(self, key: int, now_ns: int) -> bool:
        """Whether a block can be found."""
        return self._there_ns.get(key, FOREVER) <= now_ns

    def coming_ns(self, key: int) -> int | None:
        """When a block that has a place here will be, or was, there; None for any other."""
        return self._there_ns.get(key)

    def use(self, keys: Sequence[int]) -> None:
        """Take note that a prefix was used: its last block is the first of them to go."""
        there_ns = self._there_ns
        for key in reversed(keys):
            if key in there_ns:
                there_ns.move_to_end(key)

    def make_room(self, keys: Iterable[int], now_ns: int) -> tuple[list[int], list[int]]:
        """Give a place to each of the blocks that has none; returns those that got one, and the evicted ones."""
        there_ns = self._there_ns
        new: list[int] = []
        evicted: list[int] = []
        for key in keys:
            if key in there_ns:
                continue
            if len(there_ns) >= self.capacity_blocks:
                oldest, oldest_there_ns = next(iter(there_ns.items()))
                if oldest_there_ns > now_ns:
                    break
                del there_ns[oldest]
                evicted.append(oldest)
            there_ns[key] = FOREVER
            new.append(key)
        return new, evicted

    def arrive(self, keys: Iterable[int], end_ns: int) -> None:
        """Take note of when blocks that got a place will be there."""
        for key in keys:
            self._there_ns[key] = end_ns

    def check(self) -> None:
        """Raise AssertionError if there is more than there is room for."""
        if len(self._there_ns) > self.capacity_blocks:
            raise AssertionError(f"{self.name} holds {len(self._there_ns)} of {self.capacity_blocks} blocks")
