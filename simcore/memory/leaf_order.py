"""In which order leaves of a radix tree are given up."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from policies.eviction import Eviction
from simcore.memory.free_order import CachedBlock
from simcore.memory.radix_node import Node

DescribeRun = Callable[[int, int, int], CachedBlock]
"""The facts of a run of blocks from the blocks before it, its own, and a level of priority."""

_FEW = 64


class LeafOrder:
    """Leaves that nobody holds: of least worth first, then used longest ago, then oldest.

    Without an ``eviction`` policy all are worth the same, which is least recently used. ``_heap`` also has entries that
    hold no more, but never many times as many as there are leaves.
    """

    __slots__ = ("_describe", "_eviction", "_heap", "_leaves")

    def __init__(self, eviction: Eviction | None = None, describe: DescribeRun | None = None) -> None:
        if (eviction is None) != (describe is None):
            raise AssertionError("an eviction policy needs the facts of what it ranks")
        self._eviction = eviction
        self._describe = describe
        self._leaves: dict[int, Node] = {}
        self._heap: list[tuple[float, int, int]] = []

    def __len__(self) -> int:
        return len(self._leaves)

    def __contains__(self, node: Node) -> bool:
        return node.number in self._leaves

    def rate(self, node: Node) -> None:
        """Say what it is worth to keep a node that has just been let go."""
        if self._eviction is not None and self._describe is not None:
            facts = self._describe(node.start, len(node.blocks), node.priority)
            facts.uses = node.uses
            node.worth = self._eviction.worth(facts)

    def push(self, node: Node) -> None:
        """A node that nobody holds is a leaf now."""
        self._leaves[node.number] = node
        if len(self._heap) > _FEW + 2 * len(self._leaves):
            self._heap = [(leaf.worth, leaf.last_access, leaf.number) for leaf in self._leaves.values()]
            heapify(self._heap)
        else:
            heappush(self._heap, (node.worth, node.last_access, node.number))

    def remove(self, node: Node) -> None:
        """A node is held, if it was here at all."""
        self._leaves.pop(node.number, None)

    def pop(self) -> Node:
        """Take out the leaf to give up; there must be one."""
        while True:
            worth, last_access, number = heappop(self._heap)
            node = self._leaves.get(number)
            if node is not None and (node.worth, node.last_access) == (worth, last_access):
                break
        del self._leaves[number]
        if self._eviction is not None:
            self._eviction.evicted(worth)
        return node
