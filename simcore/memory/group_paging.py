"""Counts of KV blocks where groups of layers have block tables of their own, over one pool of blocks."""

from simcore.core.request import Request
from simcore.memory.kv_groups import KvCacheLayout
from simcore.memory.paging import Paging


class GroupPaging(Paging):
    """What both ways of keeping the blocks of KV cache groups have in common.

    All groups have blocks of equally many tokens. A block of a sliding group is given back at the end of the step in
    which its last token leaves the window; vLLM does so when it plans the request's next step. No step computes more
    than ``max_chunk_tokens`` of a prompt.
    """

    __slots__ = ("_layout", "_max_chunk_tokens", "blocks_each")

    releases = True

    def __init__(self, total_blocks: int, block_size_tokens: int, layout: KvCacheLayout, max_chunk_tokens: int) -> None:
        super().__init__(total_blocks, block_size_tokens)
        self._layout = layout
        self._max_chunk_tokens = max_chunk_tokens
        self.blocks_each = len(layout.groups)

    def most_blocks(self, tokens: int, request: Request | None = None) -> int:
        """The most blocks that a request, or any, holds at any time until so many tokens of it are computed."""
        return self._layout.most_blocks_held(tokens, self._max_chunk_tokens)

    def blocks_for(self, tokens: int) -> int:
        """Blocks of a request between two steps."""
        return self._layout.blocks_held(tokens, tokens)

    def blocks_to_grow(self, held_tokens: int, new_tokens: int) -> int:
        """Further blocks that a request with ``held_tokens`` in memory needs for ``new_tokens`` more."""
        return self.blocks_each * super().blocks_to_grow(held_tokens, new_tokens)
