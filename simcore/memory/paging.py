"""Counts of KV blocks: what every way of keeping them in one piece has in common."""

from simcore.core.request import Request
from simcore.memory.kv_memory import KVMemory


class Paging(KVMemory):
    """One pool of blocks, of which those that nobody holds are counted.

    Cached blocks that nobody holds count as free (Kwon et al., SOSP 2023, section 4.2, for the paging).
    """

    __slots__ = ("block_size_tokens", "free_blocks", "peak_used_blocks", "pinned_blocks", "total_blocks")

    block_size_tokens: int
    total_blocks: int
    free_blocks: int
    peak_used_blocks: int
    pinned_blocks: int

    def __init__(self, total_blocks: int, block_size_tokens: int) -> None:
        self.total_blocks = total_blocks
        self.block_size_tokens = block_size_tokens
        self.free_blocks = total_blocks
        self.peak_used_blocks = 0
        self.pinned_blocks = 0

    @property
    def unpinned_blocks(self) -> int:
        """Blocks that are not held for good."""
        return self.total_blocks - self.pinned_blocks

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold ``tokens`` tokens of one request."""
        return -(-tokens // self.block_size_tokens)

    def most_blocks(self, tokens: int, request: Request | None = None) -> int:
        """The most blocks that a request, or any, holds at any time until so many tokens of it are computed."""
        return -(-tokens // self.block_size_tokens)

    def blocks_to_grow(self, held_tokens: int, new_tokens: int) -> int:
        """Further blocks that a request with ``held_tokens`` in memory needs for ``new_tokens`` more."""
        block_size = self.block_size_tokens
        return (held_tokens + new_tokens + block_size - 1) // block_size - (held_tokens + block_size - 1) // block_size

    def free_for(self, request: Request) -> int:
        """Blocks that a request could take: all that are free."""
        return self.free_blocks

    def can_hold(self, request: Request, blocks: int) -> bool:
        """Whether a request could take so many more blocks."""
        return blocks <= self.free_blocks

    def unpinned_for(self, request: Request) -> int:
        """Blocks that a request could have with a replica to itself, none of them pinned."""
        return self.unpinned_blocks

    def total_for(self, request: Request) -> int:
        """Blocks that a request could have with a replica to itself, pinned ones that it is sure to find among them."""
        return self.unpinned_for(request)

    def _use(self, blocks: int) -> None:
        """Count blocks as held."""
        free = self.free_blocks - blocks
        if free < 0:
            raise AssertionError(f"{blocks} blocks asked for, {self.free_blocks} free")
        self.free_blocks = free
        used = self.total_blocks - free
        if used > self.peak_used_blocks:
            self.peak_used_blocks = used

    def _give_back(self, blocks: int) -> None:
        """Count blocks as free."""
        self.free_blocks += blocks
        if self.free_blocks > self.total_blocks:
            raise AssertionError(f"{self.free_blocks} of {self.total_blocks} blocks free")
