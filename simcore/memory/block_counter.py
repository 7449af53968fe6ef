"""Paged KV memory by counts alone, for workloads in which no two requests say the same."""

from collections.abc import Iterable
from heapq import heappop, heappush

from simcore.core.request import Request
from simcore.memory.paging import Paging


class KVBlockCounter(Paging):
    """Does what ``KVBlockManager`` does, without looking at single blocks.

    Where no content is shared, the prefix cache can only serve a preempted request that comes back: the full blocks
    that it had wait in the queue of cached blocks, in reverse order, until others take them. That queue is first-in
    first-out, so that two counters tell how much of it is left: ``_taken`` and ``_released``, the places of the queue's
    head and tail counted from the start of the run. What was taken out of the queue's middle is kept as gaps.
    ``_blank`` free blocks cache nothing and are taken first.
    """

    __slots__ = ("_blank", "_gaps", "_left_behind", "_prefix_caching", "_released", "_taken")

    def __init__(self, total_blocks: int, block_size_tokens: int, prefix_caching: bool = False) -> None:
        super().__init__(total_blocks, block_size_tokens)
        self._prefix_caching = prefix_caching
        self._taken = 0
        self._released = 0
        self._blank = total_blocks
        self._gaps: list[tuple[int, int]] = []
        self._left_behind: dict[int, tuple[int, int]] = {}

    def cached_prefix(self, request: Request) -> tuple[int, int]:
        """Tokens of a waiting request that are in the cache, and blocks of those that others hold: none here."""
        if request.number not in self._left_behind:
            return 0, 0
        block_size = self.block_size_tokens
        end, full_blocks = self._left_behind[request.number]
        usable = min(full_blocks, (request.tokens_to_compute - 1) // block_size)
        return max(0, min(end - self._taken, usable)) * block_size, 0

    def admit(self, request: Request, cached_tokens: int, tokens: int) -> None:
        """Give a waiting request the cached blocks that it found, and blocks for ``tokens`` more."""
        cached_blocks = cached_tokens // self.block_size_tokens
        if request.number in self._left_behind:
            end, _ = self._left_behind.pop(request.number)
            if cached_blocks:
                heappush(self._gaps, (end - cached_blocks, end))
                self._use(cached_blocks)
        self.allocate(self.blocks_for(cached_tokens + tokens) - cached_blocks)

    def restore(self, request: Request, tokens: int) -> None:
        """Give a swapped-out request blocks for its computed tokens and ``tokens`` more as it comes back."""
        self._left_behind.pop(request.number, None)
        self.allocate(self.blocks_for(request.computed_tokens + tokens))

    def grow(self, request: Request, tokens: int) -> None:
        """Give a request that prefills the blocks for its next ``tokens`` tokens."""
        self.allocate(self.blocks_to_grow(request.computed_tokens, tokens))

    def allocate(self, blocks: int) -> None:
        """Take blocks for requests that decode; asking for more than are free is a fault of the caller."""
        self._use(blocks)
        if blocks <= self._blank:
            self._blank -= blocks
            return
        self._taken += blocks - self._blank
        self._blank = 0
        while self._gaps and self._gaps[0][0] < self._taken:
            first, end = heappop(self._gaps)
            self._taken += end - first

    def check(self, held_tokens: Iterable[tuple[Request, int]]) -> None:
        """Recount the blocks of all running requests; raises AssertionError where the books are wrong."""
        held = sum(self.blocks_for(tokens) for _, tokens in held_tokens)
        cached = self._released - self._taken - sum(end - first for first, end in self._gaps)
        found, noted = (held, self._blank + cached), (self.used_blocks, self.free_blocks)
        if found != noted:
            raise AssertionError(f"held and free blocks recounted {found}, noted {noted}")

    def extend(self, request: Request, blocks: int) -> None:
        """Give a request that decodes so many blocks."""
        self.allocate(blocks)

    def forget(self, request: Request) -> None:
        """A waiting request will not come back: what it left behind serves nobody."""
        self._left_behind.pop(request.number, None)

    def release(self, request: Request, granted_tokens: int = 0, comes_back: bool = False) -> None:
        """Take back all blocks of a request, those for ``granted_tokens`` not computed yet among them."""
        tokens = request.computed_tokens + granted_tokens
        blocks = self.blocks_for(tokens)
        self._give_back(blocks)
        full_blocks = (tokens - request.unknown_tokens) // self.block_size_tokens
        self._blank += blocks - full_blocks
        self._released += full_blocks
        if comes_back and self._prefix_caching:
            self._left_behind[request.number] = self._released, full_blocks
