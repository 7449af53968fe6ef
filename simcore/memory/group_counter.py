"""Paged KV memory of a model with sliding windows, by counts: what no token sees any more is given back."""

from collections import Counter
from collections.abc import Iterable

from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.memory.group_paging import GroupPaging
from simcore.memory.kv_groups import KvCacheLayout


class KVGroupCounter(GroupPaging):
    """Does what ``KVGroupManager`` does, without looking at single blocks; nothing is found in a prefix cache."""

    __slots__ = ("_tables_by_window", "_windows")

    def __init__(self, total_blocks: int, block_size_tokens: int, layout: KvCacheLayout, max_chunk_tokens: int) -> None:
        super().__init__(total_blocks, block_size_tokens, layout, max_chunk_tokens)
        self._windows = [group for group in layout.groups if group.window_tokens is not None]
        self._tables_by_window = Counter(group.window_tokens or 0 for group in self._windows)

    def cached_prefix(self, request: Request) -> tuple[int, int]:
        """Nothing is cached."""
        return 0, 0

    def admit(self, request: Request, cached_tokens: int, tokens: int) -> None:
        """Give a waiting request blocks for its first ``tokens`` tokens."""
        self._use(self.blocks_to_grow(0, tokens))

    def restore(self, request: Request, tokens: int) -> None:
        """Give a swapped-out request blocks for its computed tokens and ``tokens`` more as it comes back."""
        self._use(self.blocks_for(request.computed_tokens) + self.blocks_to_grow(request.computed_tokens, tokens))

    def grow(self, request: Request, tokens: int) -> None:
        """Give a request that prefills the blocks for its next ``tokens`` tokens."""
        self._use(self.blocks_to_grow(request.computed_tokens, tokens))

    def allocate(self, blocks: int) -> None:
        """Take blocks for requests that decode; asking for more than are free is a fault of the caller."""
        self._use(blocks)

    def extend(self, request: Request, blocks: int) -> None:
        """Give a request that decodes so many blocks."""
        self._use(blocks)

    def slide(self, request: Request, tokens_before: int) -> None:
        """Take back what has left the windows of a request that had computed ``tokens_before`` a step ago."""
        tokens = request.computed_tokens
        passed = sum(group.released_blocks(tokens) - group.released_blocks(tokens_before) for group in self._windows)
        self._give_back(passed)

    def slide_decoding(self, pool: DecodePool) -> None:
        """Take back what has left windows with the last step of all that decode."""
        self._give_back(pool.blocks_passed(self._tables_by_window))

    def release(self, request: Request, granted_tokens: int = 0, comes_back: bool = False) -> None:
        """Take back all blocks of a request, those for ``granted_tokens`` not computed yet among them."""
        computed_tokens = request.computed_tokens
        self._give_back(self.blocks_for(computed_tokens) + self.blocks_to_grow(computed_tokens, granted_tokens))

    def check(self, held_tokens: Iterable[tuple[Request, int]]) -> None:
        """Recount the blocks of all running requests; raises AssertionError where the books are wrong."""
        held = sum(self.blocks_for(tokens) for _, tokens in held_tokens)
        if held != self.used_blocks:
            raise AssertionError(f"held blocks recounted {held}, noted {self.used_blocks}")
