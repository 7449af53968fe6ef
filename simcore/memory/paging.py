"""Counts of KV blocks: what every way of keeping them has in common."""

from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request


class Paging:
    """``total_blocks`` blocks of ``block_size_tokens`` tokens, of which ``free_blocks`` are held by nobody.

    Cached blocks that nobody holds count as free (Kwon et al., SOSP 2023, section 4.2, for the paging).
    """

    partitioned = False
    """Whether some blocks are for some requests only."""
    releases = False
    """Whether requests give back blocks while they run."""
    forgets = False
    """Whether what a waiting request would find cached can become less by a leap, as blocks are given up or expire."""
    timed = False
    """Whether decode steps change what depends on when they end, so that they must be planned one by one."""
    blocks_each = 1
    """Blocks that a request needs when it outgrows those it has."""

    __slots__ = ("block_size_tokens", "free_blocks", "peak_used_blocks", "pinned_blocks", "total_blocks")

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

    @property
    def used_blocks(self) -> int:
        """Blocks that some request holds."""
        return self.total_blocks - self.free_blocks

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold ``tokens`` tokens of one request."""
        return -(-tokens // self.block_size_tokens)

    def most_blocks(self, tokens: int, request: Request | None = None) -> int:
        """The most blocks that a request, or any, holds at any time until so many tokens of it are computed."""
        return -(-tokens // self.block_size_tokens)

    def forget(self, request: Request) -> None:
        """A waiting request will not come back: nothing of it need be kept."""

    def decodes(self, request: Request) -> None:
        """A request has joined the decode pool, or was moved in it: told only where memory ``releases``."""

    def pauses(self, request: Request) -> None:
        """A request leaves its place in the decode pool: told only where memory ``releases``."""

    def slide(self, request: Request, tokens_before: int) -> None:
        """Take back what has left the windows of a request that had computed ``tokens_before`` a step ago: nothing."""

    def slide_decoding(self, pool: DecodePool) -> None:
        """Take back what has left windows with the last step of all that decode: nothing."""

    def blocks_to_grow(self, held_tokens: int, new_tokens: int) -> int:
        """Further blocks that a request with ``held_tokens`` in memory needs for ``new_tokens`` more."""
        block_size = self.block_size_tokens
        return (held_tokens + new_tokens + block_size - 1) // block_size - (held_tokens + block_size - 1) // block_size

    def free_for(self, request: Request) -> int:
        """Blocks that a request could take."""
        return self.free_blocks

    def unpinned_for(self, request: Request) -> int:
        """Blocks that a request could have with a replica to itself, none of them pinned."""
        return self.unpinned_blocks

    def total_for(self, request: Request) -> int:
        """Blocks that a request could have with a replica to itself, pinned ones that it is sure to find among them."""
        return self.unpinned_for(request)

    def apart(self, one: Request, other: Request) -> bool:
        """Whether what one request gives up is of no use to the other."""
        return False

    def computed(self, request: Request) -> None:
        """Take note that a request has computed the chunk of its prompt that it was given blocks for."""
        return

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
