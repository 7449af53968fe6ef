"""Paged KV memory with a prefix cache, of a model that also has layers of linear attention."""

from simcore.core.batch_plan import BlockCopy
from simcore.core.request import Request
from simcore.memory.block_manager import KVBlockManager
from simcore.memory.block_pool import Expiry
from simcore.memory.free_order import FreeOrder
from simcore.memory.kept_states import KeptStates
from simcore.memory.request_keys import Namespace, one_for_all


class KVStateManager(KVBlockManager):
    """Finds a prefix as far as its blocks are cached and a state was kept that sums it up.

    Of a chunk that is under way nothing is found before it is computed. A request's own state counts among those of
    running requests.
    """

    __slots__ = ("_states",)

    def __init__(
        self,
        total_blocks: int,
        block_size_tokens: int,
        states: KeptStates,
        namespace: Namespace = one_for_all,
        order: FreeOrder | None = None,
        expiry: Expiry | None = None,
    ) -> None:
        super().__init__(total_blocks, block_size_tokens, True, namespace, order, expiry)
        self._states = states

    def admit(self, request: Request, cached_tokens: int, tokens: int) -> None:
        """Give a waiting request the cached blocks that it found, and blocks for ``tokens`` more."""
        cached = len(super()._find(request))
        super().admit(request, cached_tokens, tokens)
        found = cached_tokens // self.block_size_tokens
        self._states.begin(request.number, self._keys.of(request).at, found, cached)

    def computed(self, request: Request) -> None:
        """Keep the states of a chunk that was computed."""
        self._reach(request, request.computed_tokens)

    def release(self, request: Request, granted_tokens: int = 0, comes_back: bool = False) -> None:
        """Take back all blocks of a request, and keep the state after what it computed."""
        self._reach(request, request.computed_tokens - request.unknown_tokens)
        self._states.leave(request.number)
        super().release(request, granted_tokens, comes_back)

    def fork(self, parent: Request, child: Request) -> list[BlockCopy]:
        """Let ``child`` begin with all that a running request has computed, a copy of its state included."""
        self._states.fork(parent.number, child.number)
        return super().fork(parent, child)

    def _reach(self, request: Request, tokens: int) -> None:
        self._states.reach(request.number, self._keys.of(request).at, tokens // self.block_size_tokens)

    def _find(self, request: Request) -> list[int]:
        found = super()._find(request)
        return found[: self._states.longest(self._keys.of(request).at, len(found))]
