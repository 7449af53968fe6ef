"""Paged KV memory whose prefix cache is a radix tree."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from simcore.core.batch_plan import BlockCopy
from simcore.core.request import Request
from simcore.memory.blank_blocks import BlankBlocks
from simcore.memory.block_pool import Expiry
from simcore.memory.leaf_order import LeafOrder
from simcore.memory.paging import Paging
from simcore.memory.radix_node import Node
from simcore.memory.radix_tree import RadixTree
from simcore.memory.request_keys import Namespace, RequestKeys, one_for_all


@dataclass(slots=True)
class _Holding:
    """What a running request holds: ``cached_blocks`` of the tree, down to ``node``, and then blocks of its ``own``."""

    node: Node
    cached_blocks: int
    own: list[int]


class KVRadixManager(Paging):
    """Does what ``KVBlockManager`` does, by the rules of SGLang where they are not vLLM's.

    The full blocks that a request computed enter the tree when the step is over that computed them (while prefilling)
    or when it leaves for good (what it generated); one that is preempted enters nothing more. So requests of one step
    do not find each other's blocks. If the tree has a block of the same contents already, the request gives its own
    back and goes on with the tree's. When memory is needed, whole leaves of the tree are given up, by default the one
    used longest ago, which is when a request found it or entered it, not when it left the memory alone.

    What differs from SGLang, since schedulers of others meet their memory at fewer points (``KVRadixCounter`` is for
    turns as SGLang takes them, and differs in nothing):

    - SGLang looks up waiting requests whenever it plans, and each look counts as a use and splits nodes; here only
      admission does.
    - Where blocks run short, SGLang gives up leaves worth all that is asked for; here, just what is missing, so that
      several steps at once give up the same as one after the other.
    - After a preemption SGLang gives up leaves ahead of need; here nothing is.
    - SGLang preempts no request in mid-prefill; here the preemption policy may, and the chunks computed so far stay in
      the tree.

    Parallel samples need no copies: each is a request that finds the prompt in the tree. With a block size of 1, which
    is SGLang's default page size, sharing is by token.
    """

    numbered = True
    forgets = True

    __slots__ = ("_blank", "_holdings", "_keys", "_tree", "_unsettled")

    def __init__(
        self,
        total_blocks: int,
        block_size_tokens: int,
        namespace: Namespace = one_for_all,
        order: LeafOrder | None = None,
        expiry: Expiry | None = None,
    ) -> None:
        super().__init__(total_blocks, block_size_tokens)
        self._tree = RadixTree(LeafOrder() if order is None else order, expiry)
        self._keys = RequestKeys(block_size_tokens, namespace)
        self._blank = BlankBlocks(total_blocks)
        self._holdings: dict[int, _Holding] = {}
        self._unsettled: list[int] = []

    def cached_prefix(self, request: Request) -> tuple[int, int]:
        """Tokens of a waiting request that are in the cache, and how many of their blocks others hold."""
        usable = (request.tokens_to_compute - 1) // self.block_size_tokens
        found, held = self._tree.find(self._keys.of(request).at, usable)
        return found * self.block_size_tokens, held

    def admit(self, request: Request, cached_tokens: int, tokens: int) -> None:
        """Give a waiting request the cached blocks that it found, and blocks for ``tokens`` more."""
        tree = self._tree
        node, found = tree.match(self._keys.of(request).at, cached_tokens // self.block_size_tokens)
        if found * self.block_size_tokens != cached_tokens:
            raise AssertionError(f"{found} blocks are cached, not {cached_tokens} tokens")
        self._use(tree.hold(node, tree.root, request.priority))
        own = self._take(self.blocks_for(cached_tokens + tokens) - found)
        self._holdings[request.number] = _Holding(node, found, own)

    def restore(self, request: Request, tokens: int) -> None:
        """Give a swapped-out request blocks for its computed tokens and ``tokens`` more as it comes back.

        They are its own, whatever the tree has, until they enter it.
        """
        own = self._take(self.blocks_for(request.computed_tokens + tokens))
        self._holdings[request.number] = _Holding(self._tree.root, 0, own)

    def grow(self, request: Request, tokens: int) -> None:
        """Give a request that prefills the blocks for its next ``tokens`` tokens."""
        self._holdings[request.number].own += self._take(self.blocks_to_grow(request.computed_tokens, tokens))

    def computed(self, request: Request) -> None:
        """Enter the full blocks of a request that prefills into the tree: its chunk is done."""
        self._enter(request, self._holdings[request.number])

    def allocate(self, blocks: int) -> None:
        """Take blocks for requests that decode; asking for more than are free is a fault of the caller."""
        self._unsettled += self._take(blocks)

    def extend(self, request: Request, blocks: int) -> None:
        """Give a request that decodes so many blocks."""
        self.allocate(blocks)

    def forget(self, request: Request) -> None:
        """A waiting request will not come back: its keys are given up."""
        self._keys.forget(request)

    def release(self, request: Request, granted_tokens: int = 0, comes_back: bool = False) -> None:
        """Take back all blocks of a request, those for ``granted_tokens`` not computed yet among them."""
        holding = self._holdings.pop(request.number)
        self._settle(holding, request.computed_tokens + granted_tokens)
        if not comes_back:
            self._enter(request, holding)
            self._keys.forget(request)
        self._blank.given_back += reversed(holding.own)
        self._give_back(len(holding.own) + self._tree.release(holding.node))

    def block_table(self, request: Request, new_tokens: int = 0, group: int = 0) -> list[int]:
        """The blocks of a running request, in order: those of the tree, then its own."""
        holding = self._holdings[request.number]
        self._settle(holding, request.tokens_in_memory + new_tokens)
        return self._tree.blocks_to(holding.node) + holding.own

    def can_fork(self, parent: Request) -> bool:
        """Whether all full blocks of the parent are in the tree, and one is free for what its last one holds.

        That is so when its prefill is done and it has not filled another block since.
        """
        full_blocks, partial = divmod(parent.tokens_in_memory, self.block_size_tokens)
        return self._holdings[parent.number].cached_blocks == full_blocks and bool(self.free_blocks or not partial)

    def fork(self, parent: Request, child: Request) -> list[BlockCopy]:
        """Let ``child`` begin with all that a running request has computed; its content must say the same of that."""
        holding, tree = self._holdings[parent.number], self._tree
        self._settle(holding, parent.tokens_in_memory)
        tree.hold(holding.node, tree.root, child.priority)
        partial = parent.tokens_in_memory % self.block_size_tokens > 0
        own = self._take(1) if partial else []
        self._holdings[child.number] = _Holding(holding.node, holding.cached_blocks, own)
        return [BlockCopy(holding.own[0], own[0])] if partial else []

    def check(self, held_tokens: Iterable[tuple[Request, int]]) -> None:
        """Recount the blocks of all running requests; raises AssertionError where the books are wrong."""
        unsettled = {}
        for request, tokens in held_tokens:
            holding = self._holdings[request.number]
            unsettled[request.number] = self.blocks_for(tokens) - holding.cached_blocks - len(holding.own)
        if unsettled.keys() != self._holdings.keys() or sum(unsettled.values()) != len(self._unsettled):
            raise AssertionError(f"blocks not settled: recounted {unsettled}, noted {len(self._unsettled)}")
        locks: Counter[int] = Counter()
        for holding in self._holdings.values():
            node, cached_blocks = holding.node, 0
            while node is not self._tree.root:
                locks[node.number] += 1
                cached_blocks += len(node.blocks)
                node = node.parent
            if cached_blocks != holding.cached_blocks:
                raise AssertionError(f"{cached_blocks} blocks down to a node, noted {holding.cached_blocks}")
        self._tree.check(locks)
        owned = [*self._unsettled, *chain.from_iterable(holding.own for holding in self._holdings.values())]
        cached = [block for node in self._tree for block in node.blocks]
        if sorted([*self._blank, *owned, *cached]) != list(range(self.total_blocks)):
            raise AssertionError("blocks are not each either blank, cached or a request's own")
        held = len(owned) + sum(len(node.blocks) for node in self._tree if node.locks)
        if held != self.used_blocks:
            raise AssertionError(f"{held} blocks are held, noted {self.used_blocks}")

    def _take(self, blocks: int) -> list[int]:
        """Hold so many free blocks."""
        self._use(blocks)
        while len(self._blank) < blocks:
            self._blank.given_back += self._tree.evict()
        return self._blank.take(blocks)

    def _settle(self, holding: _Holding, tokens: int) -> None:
        missing = self.blocks_for(tokens) - holding.cached_blocks - len(holding.own)
        if missing > 0:
            holding.own += self._unsettled[-missing:]
            del self._unsettled[-missing:]

    def _enter(self, request: Request, holding: _Holding) -> None:
        """Move the full blocks of what a request has computed from its own to the tree's."""
        tree, own = self._tree, holding.own
        first, end = holding.cached_blocks, request.computed_tokens // self.block_size_tokens
        keys = list(self._keys.of(request).between(first, end))
        node, known = tree.insert(holding.node, keys, own[: len(keys)])
        self._blank.given_back += own[:known]
        del own[: len(keys)]
        self._give_back(len(keys) - tree.hold(node, holding.node, request.priority))
        holding.node, holding.cached_blocks = node, end
