"""Memory that a request reserves for all it may ever need, as engines did before KV memory was paged."""

from collections.abc import Iterable
from typing import Literal

from simcore.core.request import Request
from simcore.memory.paging import Paging

Reservation = Literal["limit", "longest"]


class ReservedMemory(Paging):
    """Gives a request its blocks once, as it is admitted, and takes them back as it ends; nobody ever runs short.

    By "limit" they are for its prompt and as many tokens as it may generate ("max_tokens" of Orca, Yu et al., OSDI
    2022, algorithm 1); by "longest" for ``max_context_tokens``, whatever it asks for (the "Orca (Max)" of Kwon et al.,
    SOSP 2023, section 6.1, and a slot of llama.cpp). The last token generated is never read back and takes no room.
    Free blocks are counted as if they were in one piece: what pieces of unequal size lose between them is not.
    """

    blocks_each = 0

    __slots__ = ("_by_limit", "_max_context_tokens")

    def __init__(
        self, total_blocks: int, block_size_tokens: int, reservation: Reservation, max_context_tokens: int
    ) -> None:
        super().__init__(total_blocks, block_size_tokens)
        self._by_limit = reservation == "limit"
        self._max_context_tokens = max_context_tokens

    def most_blocks(self, tokens: int, request: Request | None = None) -> int:
        """What the request reserves, however few tokens it has yet."""
        if request is None or not self._by_limit:
            return self.blocks_for(self._max_context_tokens)
        return self.blocks_for(request.prompt_tokens + request.max_output_tokens - 1)

    def blocks_to_grow(self, held_tokens: int, new_tokens: int) -> int:
        """None: what a request may need it has."""
        return 0

    def cached_prefix(self, request: Request) -> tuple[int, int]:
        """Nothing is kept of what has ended."""
        return 0, 0

    def admit(self, request: Request, cached_tokens: int, tokens: int) -> None:
        """Give a waiting request all that it reserves."""
        self._use(self.most_blocks(tokens, request))

    def restore(self, request: Request, tokens: int) -> None:
        """The same for a swapped-out request that comes back."""
        self.admit(request, 0, tokens)

    def grow(self, request: Request, tokens: int) -> None:
        """A request that prefills needs nothing more."""

    def extend(self, request: Request, blocks: int) -> None:
        """Nor does one that decodes."""

    def allocate(self, blocks: int) -> None:
        """Nor do all that decode."""

    def release(self, request: Request, granted_tokens: int = 0, comes_back: bool = False) -> None:
        """Take back all that a request had reserved."""
        self._give_back(self.most_blocks(request.computed_tokens, request))

    def check(self, held_tokens: Iterable[tuple[Request, int]]) -> None:
        """Recount what running requests reserve; raises AssertionError where the books are wrong."""
        reserved = 0
        for request, tokens in held_tokens:
            blocks = self.most_blocks(tokens, request)
            if tokens > blocks * self.block_size_tokens:
                raise AssertionError(f"{tokens} tokens in {blocks} reserved blocks")
            reserved += blocks
        if reserved != self.used_blocks:
            raise AssertionError(f"{reserved} blocks are reserved, noted {self.used_blocks}")
