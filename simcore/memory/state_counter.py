"""KV memory in a radix tree, of a model that also has layers of linear attention."""

from simcore.core.request import Request
from simcore.memory.block_pool import Expiry
from simcore.memory.kept_states import KeptStates
from simcore.memory.leaf_order import LeafOrder
from simcore.memory.radix_counter import KVRadixCounter
from simcore.memory.radix_node import Node
from simcore.memory.request_keys import Namespace, one_for_all


class KVStateCounter(KVRadixCounter):
    """Finds a prefix as far as the tree has it and a state was kept that sums it up.

    States are kept of what enters the tree, when it does.
    """

    __slots__ = ("_cached", "_states")

    def __init__(
        self,
        total_blocks: int,
        block_size_tokens: int,
        states: KeptStates,
        namespace: Namespace = one_for_all,
        order: LeafOrder | None = None,
        expiry: Expiry | None = None,
    ) -> None:
        super().__init__(total_blocks, block_size_tokens, True, namespace, order, expiry)
        self._states = states
        self._cached: dict[int, int] = {}

    def cached_prefix(self, request: Request) -> tuple[int, int]:
        """Tokens of a waiting request that are in the cache, and how many of their blocks others hold."""
        tokens, _ = super().cached_prefix(request)
        at = self._keys.of(request).at
        found, held = self.tree.find(at, self._states.longest(at, tokens // self.block_size_tokens))
        return found * self.block_size_tokens, held

    def hold(self, request: Request, cached_tokens: int) -> None:
        """Give a request the prefix that it has just found."""
        super().hold(request, cached_tokens)
        found, cached = cached_tokens // self.block_size_tokens, self._cached.pop(request.number)
        self._states.begin(request.number, self._keys.of(request).at, found, cached)

    def publish(self, request: Request, tokens: int) -> None:
        """Enter the full blocks of a request's first ``tokens`` into the tree, and keep the state after them."""
        super().publish(request, tokens)
        self._states.reach(request.number, self._keys.of(request).at, tokens // self.block_size_tokens)

    def release(self, request: Request, granted_tokens: int = 0, comes_back: bool = False) -> None:
        """Take back all blocks of a request, those for ``granted_tokens`` not computed yet among them."""
        super().release(request, granted_tokens, comes_back)
        self._states.leave(request.number)

    def forget(self, request: Request) -> None:
        """A waiting request will not come back: its keys are given up."""
        super().forget(request)
        self._cached.pop(request.number, None)

    def _match(self, request: Request, tokens: int) -> tuple[Node, int]:
        node, cached = super()._match(request, tokens)
        self._cached[request.number] = cached
        at = self._keys.of(request).at
        found = self._states.longest(at, cached)
        return self.tree.match(at, found) if found < cached else (node, found)
