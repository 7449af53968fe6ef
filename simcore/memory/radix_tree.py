"""A radix tree over block keys: prefixes that requests share are stored once, and found by walking down from the root.

The rules are those of SGLang's radix cache (Zheng et al., SGLang, NeurIPS 2024, section 3; release 0.5.23): every match
and every insert counts as use of all nodes on its path, and a split as use of the lower half.
"""

from collections.abc import Iterator, Mapping, Sequence

from simcore.memory.block_pool import Expiry
from simcore.memory.leaf_order import LeafOrder
from simcore.memory.radix_node import KeyOf, Node


class RadixTree:
    """Cached blocks by what they hold.

    A node that a request holds is locked, and so are all up to the root. Memory is made free leaf by leaf: a leaf that
    nobody holds is given up with all of its blocks, and its parent may be a leaf then. ``order`` says which leaf goes
    first. With an ``expiry``, a node that nobody has held for so long is not found any more.

    A lookup costs a comparison per node and a few where it ends, since the last keys of two runs tell whether they are
    equal; holding and letting go cost a step per node.
    """

    __slots__ = ("_expiry", "_leaves", "_nodes", "accesses", "root")

    def __init__(self, order: LeafOrder, expiry: Expiry | None = None) -> None:
        self.accesses = 0
        self._nodes = 0
        self._leaves = order
        self._expiry = expiry
        self.root = Node(0, 0, [], [], locks=1)

    def find(self, key_of: KeyOf, end: int) -> tuple[int, int]:
        """How many blocks of a text, of the first ``end``, are in the tree, and how many of those are held."""
        found = held = 0
        for node, common in self._walk(self.root, key_of, end, self._expiry):
            found += common
            if node.locks:
                held += common
        return found, held

    def match(self, key_of: KeyOf, end: int) -> tuple[Node, int]:
        """The node with which the longest known prefix of a text ends, and the blocks of that prefix.

        A node of which only the beginning matches is split there.
        """
        self.accesses += 1
        node, found = self.root, 0
        for step, common in self._walk(self.root, key_of, end, self._expiry):
            node, found = self._split(step, common), found + common
        self._use(node)
        return node, found

    def insert(self, node: Node, keys: Sequence[int], blocks: Sequence[int]) -> tuple[Node, int]:
        """Enter blocks that follow those of a node; returns the node with which they end and how many were known.

        The first ``known`` blocks stay the caller's: the tree has others that hold the same.
        """
        self.accesses += 1
        known = 0
        for step, common in self._walk(node, keys.__getitem__, len(keys), None):
            node, known = self._split(step, common), known + common
        if known < len(keys):
            leaf = self._new_node(node, node.start + len(node.keys), [*keys[known:]], blocks[known:])
            node.children[leaf.keys[0]] = node = leaf
        self._use(node)
        return node, known

    def hold(self, node: Node, above: Node, priority: int = 0) -> int:
        """Lock a node and those over it, up to ``above``, which is locked; returns how many blocks were free."""
        were_free = 0
        while node is not above:
            if not node.locks:
                were_free += len(node.blocks)
                self._leaves.remove(node)
            node.locks += 1
            node.priority = min(node.priority, priority) if node.uses else priority
            node.uses += 1
            node = node.parent
        return were_free

    def release(self, node: Node) -> int:
        """Unlock a node and all over it; returns how many blocks are free then."""
        freed = 0
        root = self.root
        while node is not root:
            node.locks -= 1
            if not node.locks:
                freed += len(node.blocks)
                if self._expiry is not None:
                    node.free_since_s = self._expiry.now_s()
                self._leaves.rate(node)
                if not node.children:
                    self._leaves.push(node)
            node = node.parent
        return freed

    def free_blocks_to(self, node: Node) -> int:
        """How many blocks of the prefix that ends with a node nobody holds."""
        blocks = 0
        while not node.locks:
            blocks += len(node.blocks)
            node = node.parent
        return blocks

    def evict(self) -> Sequence[int]:
        """Give up the leaf that is worth least; there must be one that nobody holds. Returns its blocks."""
        leaf = self._leaves.pop()
        parent = leaf.parent
        del parent.children[leaf.keys[0]]
        if not parent.children and not parent.locks:
            self._leaves.push(parent)
        return leaf.blocks

    def blocks_to(self, node: Node) -> list[int]:
        """All blocks of the prefix that ends with a node, in order."""
        runs = []
        while node is not self.root:
            runs.append(node.blocks)
            node = node.parent
        return [block for run in reversed(runs) for block in run]

    def __iter__(self) -> Iterator[Node]:
        """All nodes but the root, parents before their children."""
        unseen = list(self.root.children.values())
        while unseen:
            node = unseen.pop()
            yield node
            unseen += node.children.values()

    def check(self, locks: Mapping[int, int]) -> None:
        """Recount everything, given the locks of each node; raises AssertionError where the books are wrong."""
        free_leaves = 0
        for node in self:
            if not node.keys or len(node.keys) != len(node.blocks):
                raise AssertionError(f"{len(node.keys)} keys of {len(node.blocks)} blocks")
            parent = node.parent
            if parent.children.get(node.keys[0]) is not node or parent.start + len(parent.keys) != node.start:
                raise AssertionError("a node does not follow its parent")
            if node.locks != locks.get(node.number, 0):
                raise AssertionError(f"{locks.get(node.number, 0)} requests hold a node, noted {node.locks}")
            free_leaf = not node.locks and not node.children
            free_leaves += free_leaf
            if free_leaf != (node in self._leaves):
                raise AssertionError("the leaves to give up are not those that nobody holds")
        if free_leaves != len(self._leaves):
            raise AssertionError(f"{free_leaves} leaves that nobody holds, noted {len(self._leaves)}")

    def _walk(self, node: Node, key_of: KeyOf, end: int, expiry: Expiry | None) -> Iterator[tuple[Node, int]]:
        """The nodes below ``node`` that a text goes through, each with how many of its blocks are the text's."""
        place = 0
        while place < end:
            child = node.children.get(key_of(place))
            if child is None or (expiry is not None and self._expired(child, expiry)):
                return
            common = child.common(key_of, place, min(end - place, len(child.keys)))
            whole = common == len(child.keys)
            yield child, common
            if not whole:
                return
            place += common
            node = child

    def _use(self, node: Node) -> None:
        """Stamp a node and all over it, but the root."""
        accesses = self.accesses
        if node in self._leaves:
            node.last_access = accesses
            self._leaves.push(node)
        while node is not self.root:
            node.last_access = accesses
            node = node.parent

    def _expired(self, node: Node, expiry: Expiry) -> bool:
        return not node.locks and expiry.now_s() - node.free_since_s >= expiry.after_s

    def _split(self, node: Node, blocks: int) -> Node:
        """Part a node after so many blocks; returns the upper part, or the node itself where that is all of it.

        As in SGLang, the rest counts as used now, though nobody asked for it.
        """
        if blocks == len(node.keys):
            return node
        upper = self._new_node(node.parent, node.start, node.keys[:blocks], node.blocks[:blocks])
        upper.locks, upper.uses, upper.priority, upper.worth = node.locks, node.uses, node.priority, node.worth
        upper.last_access, upper.free_since_s = self.accesses, node.free_since_s
        upper.parent.children[upper.keys[0]] = upper
        node.keys, node.blocks = node.keys[blocks:], node.blocks[blocks:]
        node.parent, node.start = upper, node.start + blocks
        upper.children[node.keys[0]] = node
        node.last_access = self.accesses
        if not node.locks and not node.children:
            self._leaves.remove(node)
            self._leaves.push(node)
        return upper

    def _new_node(self, parent: Node, start: int, keys: list[int], blocks: Sequence[int]) -> Node:
        self._nodes += 1
        node = Node(self._nodes, start, keys, blocks)
        node.parent = parent
        return node
