"""Paged KV memory of a model with sliding windows, by counts: what no token sees any more is given back."""

from collections.abc import Iterable

from simcore.memory.kv_groups import KvCacheLayout
from simcore.memory.paging import Paging
from simcore.request import Request


class KVGroupCounter(Paging):
    """Counts blocks where groups of layers have block tables of their own, over one pool of blocks.

    A block of a sliding group is given back at the end of the step in which its last token leaves the window. Nothing
    is found in a prefix cache.
    """

    __slots__ = ("_layout", "_max_batched_tokens", "_windows", "blocks_each")

    releases = True

    def __init__(
        self, total_blocks: int, block_size_tokens: int, layout: KvCacheLayout, max_batched_tokens: int
    ) -> None:
        super().__init__(total_blocks, block_size_tokens)
        self._layout = layout
        self._max_batched_tokens = max_batched_tokens
        self.blocks_each = len(layout.groups)
        self._windows = [group for group in layout.groups if group.window_tokens is not None]

    def blocks_passed(self, tokens_before: int, tokens: int) -> int:
        """Blocks that leave all windows of a request as its computed tokens grow."""
        return sum(group.released_blocks(tokens) - group.released_blocks(tokens_before) for group in self._windows)

    def tables_by_window(self) -> dict[int, int]:
        """How many groups slide by each window."""
        tables: dict[int, int] = {}
        for group in self._windows:
            if group.window_tokens is not None:
                tables[group.window_tokens] = tables.get(group.window_tokens, 0) + 1
        return tables

    def most_blocks(self, tokens: int) -> int:
        """The most blocks that a request holds at any time until so many tokens of it are computed."""
        return self._layout.most_blocks_held(tokens, self._max_batched_tokens)

    def blocks_for(self, tokens: int) -> int:
        """Blocks of a request between two steps."""
        return self._layout.blocks_held(tokens, tokens)

    def blocks_to_grow(self, held_tokens: int, new_tokens: int) -> int:
        """Further blocks that a request with ``held_tokens`` in memory needs for ``new_tokens`` more."""
        return self.blocks_each * super().blocks_to_grow(held_tokens, new_tokens)

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

    def pass_windows(self, blocks: int) -> None:
        """Take back blocks that have left the windows of requests that run on."""
        self._give_back(blocks)

    def release(self, request: Request, granted_tokens: int = 0, comes_back: bool = False) -> None:
        """Take back all blocks of a request, those for ``granted_tokens`` not computed yet among them."""
        computed_tokens = request.computed_tokens
        self._give_back(self.blocks_for(computed_tokens) + self.blocks_to_grow(computed_tokens, granted_tokens))

    def check(self, held_tokens: Iterable[tuple[Request, int]]) -> None:
        """Recount the blocks of all running requests; raises AssertionError where the books are wrong."""
        held = sum(self.blocks_for(tokens) for _, tokens in held_tokens)
        if held != self.used_blocks:
            raise AssertionError(f"held blocks recounted {held}, noted {self.used_blocks}")
