"""Which prefixes a state of linear attention was kept of."""

from collections import OrderedDict
from collections.abc import Callable

KeyAt = Callable[[int], int]
"""The key of a block of a text, by its place."""


class KeptStates:
    """At most ``capacity`` states, each of all layers after a prefix, named by the key of the prefix's last block.

    A state cannot be cut as blocks can. One is kept at the last multiple of ``every_blocks`` that a request reaches at
    once, in a chunk of its prompt or until it leaves. Where more of a prefix is cached than states reach, other
    requests are likely to part there too, so a state is kept at that place as well when it is computed again. The one
    that was used least recently is given up first.

    SGLang keeps states so in its radix tree (``mamba_track_interval`` and ``mamba_branching_seqlen``), vLLM at the end
    of blocks of some hundred tokens (``--mamba-cache-mode align``). Marconi (Pan et al., MLSys 2025) has the case for
    the places where prefixes part.
    """

    __slots__ = ("_capacity", "_every_blocks", "_keys", "_parting", "_reached")

    def __init__(self, capacity: int, every_blocks: int) -> None:
        self._capacity = capacity
        self._every_blocks = every_blocks
        self._keys: OrderedDict[int, None] = OrderedDict()
        self._reached: dict[int, int] = {}
        self._parting: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def longest(self, key_at: KeyAt, blocks: int) -> int:
        """The blocks of the longest prefix, of so many at most, after which a state is kept, 0 if there is none."""
        for place in range(self._whole(blocks), 0, -self._every_blocks):
            if key_at(place - 1) in self._keys:
                return place
        return 0

    def begin(self, number: int, key_at: KeyAt, found_blocks: int, cached_blocks: int) -> None:
        """A request goes on from a kept state, or from none, though so many blocks of its prefix are cached."""
        if found_blocks:
            self._keys.move_to_end(key_at(found_blocks - 1))
        self._reached[number] = found_blocks
        parting = self._whole(cached_blocks)
        if parting > found_blocks:
            self._parting[number] = parting

    def reach(self, number: int, key_at: KeyAt, blocks: int) -> None:
        """A request has computed so many blocks: keep a state where prefixes part, if that is new, and the last one."""
        if self._parting.get(number, blocks + 1) <= blocks:
            self._keep(key_at(self._parting.pop(number) - 1))
        last = self._whole(blocks)
        if last > self._reached[number]:
            self._reached[number] = last
            self._keep(key_at(last - 1))

    def leave(self, number: int) -> None:
        """A request gives up its memory."""
        del self._reached[number]
        self._parting.pop(number, None)

    def fork(self, parent: int, child: int) -> None:
        """A request goes on from where another is."""
        self._reached[child] = self._reached[parent]

    def _whole(self, blocks: int) -> int:
        """The blocks of the longest prefix, of so many at most, after which a state may be kept."""
        return blocks - blocks % self._every_blocks

    def _keep(self, key: int) -> None:
        self._keys[key] = None
        self._keys.move_to_end(key)
        if len(self._keys) > self._capacity:
            self._keys.popitem(last=False)
