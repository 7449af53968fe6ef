"""KV memory by counts alone, whose prefix cache is a radix tree that its scheduler looks at as SGLang's does."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from simcore.core.content import BlockKeys
from simcore.core.request import Request
from simcore.memory.block_pool import Expiry
from simcore.memory.leaf_order import LeafOrder
from simcore.memory.paging import Paging
from simcore.memory.radix_node import Node
from simcore.memory.radix_tree import RadixTree
from simcore.memory.request_keys import Namespace, RequestKeys, one_for_all

_KEPT_BLOCKS = 3
"""A request may have all blocks but these, so that what it asks for is always less than there is."""


@dataclass(slots=True)
class _Holding:
    """What a running request has of the tree: the first ``shared_blocks``, down to ``node``; the rest is its own."""

    node: Node
    shared_blocks: int = 0


class KVRadixCounter(Paging):
    """A block is free if nobody holds it: ``blank_blocks`` of these cache nothing, the others lie in the tree.

    The rules are SGLang's (release 0.5.23). What a request computed enters the tree when its scheduler says so
    (``publish``) and at its end, not when it gives way. What the tree has already is given back, and the request goes
    on with the tree's. A leaf is parted where the prompt ends, so that what was generated can be given up alone. Every
    look at a waiting request counts as use of the prefix that it finds. Whole leaves are given up until enough blocks
    are blank. Without ``shares`` nothing is kept for others.

    ``headroom_blocks`` are made blank whenever some are taken for all that decode. ``evicted_blocks`` counts what the
    tree gave up.
    """

    forgets = True

    __slots__ = (
        "_found",
        "_holdings",
        "_keys",
        "_shares",
        "_token_keys",
        "blank_blocks",
        "evicted_blocks",
        "headroom_blocks",
        "tree",
    )

    def __init__(
        self,
        total_blocks: int,
        block_size_tokens: int,
        shares: bool = True,
        namespace: Namespace = one_for_all,
        order: LeafOrder | None = None,
        expiry: Expiry | None = None,
    ) -> None:
        super().__init__(total_blocks, block_size_tokens)
        self.tree = RadixTree(LeafOrder() if order is None else order, expiry)
        self.blank_blocks = total_blocks
        self.headroom_blocks = 0
        self.evicted_blocks = 0
        self._shares = shares
        self._keys = RequestKeys(block_size_tokens, namespace)
        self._token_keys = RequestKeys(1, namespace)
        self._found: dict[int, Node] = {}
        self._holdings: dict[int, _Holding] = {}

    @property
    def shares(self) -> bool:
        """Whether requests find what others left."""
        return self._shares

    def total_for(self, request: Request) -> int:
        """Blocks that a request could have with a replica to itself: a few less than there are."""
        return max(self.total_blocks - _KEPT_BLOCKS, 0)

    def cached_prefix(self, request: Request) -> tuple[int, int]:
        """Tokens of a waiting request that are in the cache, and how many of their blocks others hold."""
        if not self._shares:
            return 0, 0
        usable = (request.tokens_to_compute - 1) // self.block_size_tokens
        found, held = self.tree.find(self._keys.of(request).at, usable)
        return found * self.block_size_tokens, held

    def look_up(self, request: Request, tokens: int) -> int:
        """How many of the first ``tokens`` of a waiting request are in the tree; counts as use of them."""
        self._found[request.number], blocks = self._match(request, tokens)
        return blocks * self.block_size_tokens

    def refresh(self, request: Request, tokens: int) -> None:
        """Use what a waiting request would find."""
        self._match(request, tokens)

    def token_keys(self, request: Request) -> BlockKeys:
        """Keys of what a request says, token by token."""
        return self._token_keys.made(request)

    def found(self, request: Request) -> Node:
        """Where in the tree the prefix ends that a waiting request found last."""
        return self._found.get(request.number, self.tree.root)

    def free_beside_found(self, request: Request) -> int:
        """Free blocks besides those of the prefix that a waiting request has just found."""
        return self.free_blocks - self.tree.free_blocks_to(self._found[request.number])

    def hold(self, request: Request, cached_tokens: int) -> None:
        """Give a request the prefix that it has just found."""
        node = self._found.pop(request.number)
        self._use(self.tree.hold(node, self.tree.root, request.priority))
        self._holdings[request.number] = _Holding(node, cached_tokens // self.block_size_tokens)

    def make_blank(self, blocks: int) -> bool:
        """Give up leaves until so many blocks are blank; returns whether they are."""
        while self.blank_blocks < blocks and self.blank_blocks < self.free_blocks:
            evicted = len(self.tree.evict())
            self.blank_blocks += evicted
            self.evicted_blocks += evicted
        return self.blank_blocks >= blocks

    def admit(self, request: Request, cached_tokens: int, tokens: int) -> None:
        """Give a waiting request the cached blocks that it found, and blocks for ``tokens`` more."""
        if self.look_up(request, cached_tokens) != cached_tokens:
            raise AssertionError(f"{cached_tokens} tokens are not cached")
        self.hold(request, cached_tokens)
        self._take(self.blocks_for(cached_tokens + tokens) - cached_tokens // self.block_size_tokens)

    def grow(self, request: Request, tokens: int) -> None:
        """Give a request that prefills the blocks for its next ``tokens`` tokens."""
        self._take(self.blocks_to_grow(request.computed_tokens, tokens))

    def allocate(self, blocks: int) -> None:
        """Take blocks for requests that decode; asking for more than are free is a fault of the caller."""
        self.make_blank(max(blocks, self.headroom_blocks))
        self._take(blocks)

    def extend(self, request: Request, blocks: int) -> None:
        """Give one request that decodes so many blocks."""
        self._take(blocks)

    def restore(self, request: Request, tokens: int) -> None:
        """Give a swapped-out request blocks for its computed tokens and ``tokens`` more as it comes back."""
        self._holdings[request.number] = _Holding(self.tree.root)
        self._take(self.blocks_for(request.computed_tokens + tokens))

    def publish(self, request: Request, tokens: int) -> None:
        """Enter the full blocks of a request's first ``tokens`` into the tree, and let it go on with the tree's."""
        end = tokens // self.block_size_tokens
        if not self._shares or tokens <= 0:
            return
        tree, holding, keys = self.tree, self._holdings[request.number], self._keys.of(request)
        entered = list(keys.between(holding.shared_blocks, end))
        node, known = tree.insert(holding.node, entered, range(len(entered)))
        prompt_blocks = request.prompt_tokens // self.block_size_tokens
        if 0 < prompt_blocks < end:
            tree.match(keys.at, prompt_blocks)
        self._give_back(len(entered) - tree.hold(node, holding.node, request.priority))
        self.blank_blocks += known
        holding.node, holding.shared_blocks = node, end

    def release(self, request: Request, granted_tokens: int = 0, comes_back: bool = False) -> None:
        """Take back all blocks of a request, those for ``granted_tokens`` not computed yet among them."""
        tokens = request.computed_tokens + granted_tokens
        if not comes_back:
            self.publish(request, request.computed_tokens)
        holding = self._holdings.pop(request.number)
        own = self.blocks_for(tokens) - holding.shared_blocks
        self.blank_blocks += own
        self._give_back(own + self.tree.release(holding.node))
        if not comes_back:
            self.forget(request)

    def forget(self, request: Request) -> None:
        """A waiting request will not come back: its keys are given up."""
        self._keys.forget(request)
        self._found.pop(request.number, None)

    def check(self, held_tokens: Iterable[tuple[Request, int]]) -> None:
        """Recount the blocks of all running requests; raises AssertionError where the books are wrong."""
        locks: Counter[int] = Counter()
        own = 0
        for request, tokens in held_tokens:
            holding, shared_blocks = self._holdings[request.number], 0
            for node in self._up_from(holding.node):
                locks[node.number] += 1
                shared_blocks += len(node.blocks)
            if shared_blocks != holding.shared_blocks:
                raise AssertionError(f"{shared_blocks} blocks down to a node, noted {holding.shared_blocks}")
            own += self.blocks_for(tokens) - shared_blocks
        self.tree.check(locks)
        cached = sum(len(node.blocks) for node in self.tree if not node.locks)
        held = sum(len(node.blocks) for node in self.tree if node.locks)
        found, noted = (own + held, cached), (self.used_blocks, self.free_blocks - self.blank_blocks)
        if found != noted:
            raise AssertionError(f"held and cached blocks recounted {found}, noted {noted}")

    def _match(self, request: Request, tokens: int) -> tuple[Node, int]:
        if not self._shares:
            return self.tree.root, 0
        return self.tree.match(self._keys.of(request).at, tokens // self.block_size_tokens)

    def _take(self, blocks: int) -> None:
        self.make_blank(blocks)
        self._use(blocks)
        self.blank_blocks -= blocks

    def _up_from(self, node: Node) -> Iterator[Node]:
        while node is not self.tree.root:
            yield node
            node = node.parent
