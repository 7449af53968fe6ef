"""Which prefixes a state of linear attention was kept of."""

from collections import OrderedDict
from collections.abc import Sequence


class KeptStates:
    """At most ``capacity`` states, each of all layers after a prefix, named by the key of the prefix's last block.

    They lie ``every_blocks`` apart or at multiples of it. The one that was used least recently is given up first.
    """

    __slots__ = ("_capacity", "_keys", "every_blocks")

    def __init__(self, capacity: int, every_blocks: int) -> None:
        self._capacity = capacity
        self._keys: OrderedDict[int, None] = OrderedDict()
        self.every_blocks = every_blocks

    def __len__(self) -> int:
        return len(self._keys)

    def whole(self, blocks: int) -> int:
        """The blocks of the longest prefix, no longer than so many, after which a state may be kept."""
        return blocks - blocks % self.every_blocks

    def longest(self, keys: Sequence[int]) -> int:
        """The blocks of the longest prefix of ``keys`` after which a state is kept, 0 if there is none."""
        for blocks in range(self.whole(len(keys)), 0, -self.every_blocks):
            if keys[blocks - 1] in self._keys:
                return blocks
        return 0

    def use(self, key: int) -> None:
        """A request goes on from a kept state."""
        self._keys.move_to_end(key)

    def keep(self, key: int) -> None:
        """Keep the state after a prefix, in place of the one that was used least recently where there is no room."""
        self._keys[key] = None
        self._keys.move_to_end(key)
        if len(self._keys) > self._capacity:
            self._keys.popitem(last=False)
