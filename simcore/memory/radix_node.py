"""A node of a radix tree over block keys."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

KeyOf = Callable[[int], int]
"""The key of a block by its place in a text. Keys are chained: if two are equal, so are all before them."""


@dataclass(slots=True, eq=False)
class Node:
    """A run of blocks that follow each other in every text that has them; ``start`` blocks stand before them.

    ``locks`` counts the requests that hold it, ``uses`` those that ever did, ``priority`` is the level of the most
    urgent of these. ``last_access`` is when it was last used, in accesses to the tree; ``worth`` and ``free_since_s``
    are as of the last time that a request let go of it. ``number`` tells equals apart: the older is smaller. ``blocks``
    may be a mere range, where nobody wants to know which they are.
    """

    number: int
    start: int
    keys: list[int]
    blocks: Sequence[int]
    parent: "Node" = field(init=False)
    children: "dict[int, Node]" = field(default_factory=dict)
    locks: int = 0
    uses: int = 0
    priority: int = 0
    last_access: int = 0
    worth: float = 0.0
    free_since_s: float = 0.0

    def common(self, key_of: KeyOf, place: int, limit: int) -> int:
        """How many of its blocks, at most ``limit``, are those of a text from ``place`` on; the first is."""
        keys, last = self.keys, limit - 1
        if keys[last] == key_of(place + last):
            return limit
        return bisect_left(range(limit), True, 1, last, key=lambda index: keys[index] != key_of(place + index))
