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

    A state cannot be cut as blocks can. One is kept at the last multiple of the interval within every chunk of a prompt
    and of all that a request has computed when it leaves. Where more of a prefix is cached than its states reach, other
    requests are likely to part there too, so a state is kept at that place as well when it is computed again. Of a
    chunk that is under way nothing is found before it is computed.

    SGLang keeps states so in its radix tree (``mamba_track_interval`` and ``mamba_branching_seqlen``), vLLM at the end
    of blocks of some hundred tokens (``--mamba-cache-mode align``). Marconi (Pan et al., MLSys 2025) has the case for
    the places where prefixes part. Both of a request's own states count among those of running requests.
    """

    __slots__ = ("_parting", "_reached", "_states")

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
        self._reached: dict[int, int] = {}
        self._parting: dict[int, int] = {}

    def admit(self, request: Request, cached_tokens: int, tokens: int) -> None:
        """Give a waiting request the cached blocks that it found, and blocks for ``tokens`` more."""
        cached = len(super()._find(request))
        super().admit(request, cached_tokens, tokens)
        found = cached_tokens // self.block_size_tokens
        if found:
            self._states.use(self._key(request, found))
        self._reached[request.number] = found
        parting = self._states.whole(cached)
        if parting > found:
            self._parting[request.number] = parting

    def computed(self, request: Request) -> None:
        """Keep the states of a chunk that was computed."""
        self._keep(request, request.computed_tokens)

    def release(self, request: Request, granted_tokens: int = 0, comes_back: bool = False) -> None:
        """Take back all blocks of a request, and keep the state after what it computed."""
        self._keep(request, request.computed_tokens - request.unknown_tokens)
        del self._reached[request.number]
        self._parting.pop(request.number, None)
        super().release(request, granted_tokens, comes_back)

    def fork(self, parent: Request, child: Request) -> list[BlockCopy]:
        """Let ``child`` begin with all that a running request has computed, a copy of its state included."""
        self._reached[child.number] = self._reached[parent.number]
        return super().fork(parent, child)

    def _keep(self, request: Request, tokens: int) -> None:
        """Keep a state where prefixes part, if that was reached now, and the last one of ``tokens`` tokens."""
        blocks = tokens // self.block_size_tokens
        parting = self._parting.get(request.number, blocks + 1)
        if parting <= blocks:
            del self._parting[request.number]
            self._states.keep(self._key(request, parting))
        last = self._states.whole(blocks)
        if last > self._reached[request.number]:
            self._reached[request.number] = last
            self._states.keep(self._key(request, last))

    def _find(self, request: Request) -> list[int]:
        found = super()._find(request)
        del found[self._states.longest(list(self._keys.of(request).between(0, len(found)))) :]
        return found

    def _key(self, request: Request, blocks: int) -> int:
        (key,) = self._keys.of(request).between(blocks - 1, blocks)
        return key
