"""Requests whose prefix is on its way from a tier below GPU memory."""

from collections import deque
from collections.abc import Callable, Iterator

from simcore.core.request import UNSET, Request
from simcore.memory.block_manager import KVBlockManager
from simcore.memory.tiers import TierChain

RecomputeTime = Callable[[int, int, int], int]
"""Nanoseconds by which a step is longer if it computes not only the last, but also the middle of three counts of
tokens: those already in memory, those that could be loaded, and those that must be computed."""


class Loading:
    """Requests that left the queue and hold blocks, but no slot yet, as those of vLLM that wait for remote KV do.

    ``under_way`` are those whose load has not ended, with the tokens they hold, ``ready`` those that run as soon as
    there is room, before anyone in the queue; ``on_loaded`` is told when a load ends. With ``recompute_ns``, blocks
    are loaded only if that is faster than computing them.
    """

    def __init__(self, tiers: TierChain, memory: KVBlockManager, recompute_ns: RecomputeTime | None = None) -> None:
        self.tiers = tiers
        self.under_way: dict[int, tuple[Request, int]] = {}
        self.ready: deque[Request] = deque()
        self.on_loaded: Callable[[], None] = lambda: None
        self._memory = memory
        self._abandoned: dict[int, tuple[Request, int]] = {}
        self._to_free: list[Request] = []
        self._recompute_ns = recompute_ns

    @property
    def size(self) -> int:
        """How many load, or have loaded and wait for room."""
        return len(self.under_way) + len(self.ready)

    @property
    def held_tokens(self) -> Iterator[tuple[Request, int]]:
        """All who have blocks, those abandoned among them, each with the tokens it has blocks for."""
        yield from self.under_way.values()
        yield from self._abandoned.values()
        for request in self.ready:
            yield request, request.computed_tokens

    def begin(self, request: Request, cached_tokens: int, free_blocks: int) -> bool:
        """Start to load what lies below of a request's prefix, as far as blocks are free; False if nothing does."""
        memory = self._memory
        block_size = memory.block_size_tokens
        keys = memory.keys_to_load(request, cached_tokens)[: max(free_blocks, 0)]
        route = self.tiers.route(keys, self._worth_ns(request.tokens_to_compute, cached_tokens))
        if route is None:
            return False
        loaded_tokens = len(route.keys) * block_size
        memory.admit_to_load(request, cached_tokens, loaded_tokens)
        if not request.preemptions and request.first_scheduled_ns == UNSET:
            request.cached_tokens = cached_tokens + loaded_tokens
            found = [route.levels.count(level) * block_size for level in range(len(self.tiers.tiers))]
            self.tiers.hits[request.number] = tuple(found)
        self.under_way[request.number] = request, cached_tokens + loaded_tokens
        self.tiers.load(route, lambda: self._loaded(request))
        return True

    def _worth_ns(self, known_tokens: int, cached_tokens: int) -> Callable[[int], int] | None:
        """How long it would take to compute so many blocks of a waiting request, after those that it found cached."""
        recompute_ns, block_size = self._recompute_ns, self._memory.block_size_tokens
        if recompute_ns is None:
            return None

        def worth_ns(blocks: int) -> int:
            tokens = blocks * block_size
            return recompute_ns(cached_tokens, tokens, known_tokens - cached_tokens - tokens)

        return worth_ns

    def prefetch(self, request: Request) -> None:
        """Have what the tiers hold of a request that has just arrived brought nearer."""
        cached_tokens, _ = self._memory.cached_prefix(request)
        self.tiers.prefetch(self._memory.keys_to_load(request, cached_tokens))

    def abandon(self, request: Request) -> bool:
        """Forget a request if it is here; blocks into which a load still writes are held until it ends."""
        if request.number in self.under_way:
            self._abandoned[request.number] = self.under_way.pop(request.number)
            return True
        if request in self.ready:
            self.ready.remove(request)
            self._memory.release(request)
            return True
        return False

    def after_step(self) -> None:
        """Copy to the tiers what was published since the last step was planned, and give back what loads have left.

        That is what requests held which were abandoned and whose loads have ended.
        """
        for keys, older in self._memory.newly_published():
            self.tiers.write(keys, older)
        for request in self._to_free:
            del self._abandoned[request.number]
            self._memory.release(request)
        self._to_free.clear()

    def _loaded(self, request: Request) -> None:
        if request.number in self._abandoned:
            _, request.computed_tokens = self._abandoned[request.number]
            self._to_free.append(request)
        else:
            _, request.computed_tokens = self.under_way.pop(request.number)
            self.ready.append(request)
        self._memory.loaded(request)
        self.on_loaded()
