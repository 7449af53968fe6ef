"""A radix tree over pages of tokens that evicts whole leaves, the one used longest ago first, and counts tokens only.

The rules are those of SGLang's radix cache (Zheng et al., SGLang, NeurIPS 2024, section 3; release 0.5.23): every look
at a prefix counts as use of the nodes on its path, a split stamps the lower half anew, an insert stamps from the top.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

KeyOf = Callable[[int], int]
"""The key of a page by its place in a text. Keys are chained: if two are equal, so are all before them."""

_DEEPER = 1e-5
"""By how much the stamp of a node is above its parent's after a look, in looks."""


@dataclass(slots=True, eq=False)
class Node:
    """A run of pages that follow each other; ``locks`` counts who needs it, ``stamp`` is when it was used last."""

    keys: list[int]
    stamp: float
    parent: "Node | None" = None
    children: "dict[int, Node]" = field(default_factory=dict)
    locks: int = 0


class PageTree:
    """Pages by the texts that they hold. ``tokens`` are all that it has, ``evictable`` those that nobody locked."""

    __slots__ = ("_clock", "_leaves", "_page_tokens", "evictable", "root", "tokens")

    def __init__(self, page_tokens: int) -> None:
        self._page_tokens = page_tokens
        self._clock = 0.0
        self._leaves: dict[int, Node] = {}
        self.root = Node([], 0.0, locks=1)
        self.tokens = self.evictable = 0

    def match(self, key_of: KeyOf, pages: int) -> tuple[Node, int]:
        """The node with which the longest known prefix of a text's first pages ends, and how many pages that has."""
        node, place = self.root, 0
        while place < pages:
            child = node.children.get(key_of(place))
            if child is None:
                break
            common = _common(child, key_of, place, min(pages - place, len(child.keys)))
            place += common
            if common < len(child.keys):
                node = self._split(child, common)
                break
            node = child
        stamp, used = self._tick(), node
        while True:
            used.stamp = stamp
            stamp -= _DEEPER
            if used.parent is None:
                return node, place
            used = used.parent

    def insert(self, keys: Sequence[int]) -> tuple[Node, int]:
        """Enter the first pages of a text; returns the node with which they end, and how many were there already."""
        node, place = self.root, 0
        while place < len(keys):
            child = node.children.get(keys[place])
            if child is None:
                break
            child.stamp = self._tick()
            common = _common(child, keys.__getitem__, place, min(len(keys) - place, len(child.keys)))
            node = self._split(child, common) if common < len(child.keys) else child
            place += common
        known = place
        if place < len(keys):
            leaf = Node(list(keys[place:]), self._tick(), node)
            node.children[leaf.keys[0]] = leaf
            self.tokens += self._size(leaf)
            self.evictable += self._size(leaf)
            self._leaves.pop(id(node), None)
            self._leaves[id(leaf)] = leaf
            node = leaf
        return node, known

    def lock(self, node: Node) -> None:
        """Keep a node, and all over it."""
        while node.parent is not None:
            if not node.locks:
                self.evictable -= self._size(node)
                self._leaves.pop(id(node), None)
            node.locks += 1
            node = node.parent

    def unlock(self, node: Node) -> None:
        """Take one lock back."""
        while node.parent is not None:
            node.locks -= 1
            if not node.locks:
                self.evictable += self._size(node)
                if not node.children:
                    self._leaves[id(node)] = node
            node = node.parent

    def evict(self, tokens: int) -> int:
        """Give up leaves that nobody locked until they had so many tokens; returns how many they had."""
        heap = [(leaf.stamp, number, leaf) for number, leaf in enumerate(self._leaves.values())]
        heapify(heap)
        entries, evicted = len(heap), 0
        while evicted < tokens and heap:
            leaf = heappop(heap)[2]
            parent = leaf.parent
            if parent is None:
                raise AssertionError("the root is no leaf to give up")
            evicted += self._size(leaf)
            del parent.children[leaf.keys[0]], self._leaves[id(leaf)]
            if not parent.children and not parent.locks:
                self._leaves[id(parent)] = parent
                heappush(heap, (parent.stamp, entries, parent))
                entries += 1
        self.tokens -= evicted
        self.evictable -= evicted
        return evicted

    def heaviest_first(self, nodes: Sequence[Node]) -> list[int]:
        """The places of ``nodes`` as a depth-first walk meets them, which goes to the child with most of them first."""
        at: dict[int, list[int]] = {}
        weight: dict[int, int] = {}
        for place, node in enumerate(nodes):
            at.setdefault(id(node), []).append(place)
            above: Node | None = node
            while above is not None:
                weight[id(above)] = weight.get(id(above), 0) + 1
                above = above.parent
        order: list[int] = []
        pending: list[tuple[Node, bool]] = [(self.root, False)]
        while pending:
            node, seen = pending.pop()
            if seen:
                order += at.get(id(node), ())
                continue
            pending.append((node, True))
            some = [child for child in node.children.values() if id(child) in weight]
            some.sort(key=lambda child: -weight[id(child)])
            pending += ((child, False) for child in reversed(some))
        return order

    def _size(self, node: Node) -> int:
        return len(node.keys) * self._page_tokens

    def _tick(self) -> float:
        self._clock += 1.0
        return self._clock

    def _split(self, node: Node, pages: int) -> Node:
        """Part a node after so many pages; returns the upper part."""
        parent = node.parent
        if parent is None:
            raise AssertionError("the root cannot be parted")
        upper = Node(node.keys[:pages], self._tick(), parent, locks=node.locks)
        parent.children[upper.keys[0]] = upper
        node.keys = node.keys[pages:]
        node.parent, node.stamp = upper, self._tick()
        upper.children[node.keys[0]] = node
        return upper


def _common(node: Node, key_of: KeyOf, place: int, limit: int) -> int:
    """How many of a node's pages, at most ``limit``, are those of a text from ``place`` on; the first is."""
    keys, last = node.keys, limit - 1
    if keys[last] == key_of(place + last):
        return limit
    return bisect_left(range(limit), True, 1, last, key=lambda index: keys[index] != key_of(place + index))
