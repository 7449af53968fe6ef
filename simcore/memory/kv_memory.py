"""The KV memory of one replica, as a scheduler and an engine see it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from simcore.core.batch_plan import BlockCopy
from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request


class KVMemory(ABC):
    """Blocks of keys and values: ``total_blocks`` of ``block_size_tokens`` tokens, ``free_blocks`` held by nobody.

    Whoever gives blocks asks first: ``can_allocate`` before ``allocate``, ``can_hold`` before ``admit``, ``grow``,
    ``extend`` or ``restore``, ``can_fork`` before ``fork``. To ask for more than there is is a fault of the caller and
    raises AssertionError.

    Blocks for all that decode are allocated together (``allocate``); which of them has which is settled when somebody
    wants to know (``block_table``) or when one leaves.
    """

    __slots__ = ()

    partitioned: ClassVar[bool] = False
    """Whether some blocks are for some requests only."""
    numbered: ClassVar[bool] = False
    """Whether it is known which blocks a request has, so that ``block_table`` answers; else they are only counted."""
    releases: bool = False
    """Whether requests give back blocks while they run."""
    forgets: bool = False
    """Whether what a waiting request would find cached can become less by a leap, as blocks are given up or expire."""
    timed: bool = False
    """Whether decode steps change what depends on when they end, so that they must be planned one by one."""
    blocks_each: int = 1
    """Blocks that a request needs when it outgrows those it has."""

    @property
    @abstractmethod
    def block_size_tokens(self) -> int:
        """Tokens of one block."""

    @property
    @abstractmethod
    def total_blocks(self) -> int:
        """Blocks in all."""

    @property
    @abstractmethod
    def free_blocks(self) -> int:
        """Blocks that no request holds; what they still cache can be found."""

    @property
    @abstractmethod
    def peak_used_blocks(self) -> int:
        """The most blocks that were held at once."""

    @property
    @abstractmethod
    def unpinned_blocks(self) -> int:
        """Blocks that are not held for good."""

    @property
    def used_blocks(self) -> int:
        """Blocks that some request holds."""
        return self.total_blocks - self.free_blocks

    @abstractmethod
    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold ``tokens`` tokens of one request, between two steps."""

    @abstractmethod
    def blocks_to_grow(self, held_tokens: int, new_tokens: int) -> int:
        """Further blocks that a request with ``held_tokens`` in memory needs for ``new_tokens`` more."""

    @abstractmethod
    def most_blocks(self, tokens: int, request: Request | None = None) -> int:
        """The most blocks that a request, or any, holds at any time until so many tokens of it are computed."""

    @abstractmethod
    def free_for(self, request: Request) -> int:
        """Blocks that a request could take."""

    @abstractmethod
    def unpinned_for(self, request: Request) -> int:
        """Blocks that a request could have with a replica to itself, none of them pinned."""

    @abstractmethod
    def total_for(self, request: Request) -> int:
        """Blocks that a request could have with a replica to itself, pinned ones that it is sure to find among them."""

    def apart(self, one: Request, other: Request) -> bool:
        """Whether what one request gives up is of no use to the other."""
        return False

    @abstractmethod
    def cached_prefix(self, request: Request) -> tuple[int, int]:
        """Tokens of a waiting request that are in the cache, and how many of their blocks others hold."""

    def can_allocate(self, blocks: int) -> bool:
        """Whether so many blocks are free for requests that decode."""
        return blocks <= self.free_blocks

    @abstractmethod
    def allocate(self, blocks: int) -> None:
        """Take blocks for all requests that decode together."""

    def can_hold(self, request: Request, blocks: int) -> bool:
        """Whether a request could take so many more blocks."""
        return blocks <= self.free_for(request)

    @abstractmethod
    def admit(self, request: Request, cached_tokens: int, tokens: int) -> None:
        """Give a waiting request the cached blocks that it found, and blocks for ``tokens`` more."""

    @abstractmethod
    def grow(self, request: Request, tokens: int) -> None:
        """Give a request that prefills the blocks for its next ``tokens`` tokens."""

    @abstractmethod
    def extend(self, request: Request, blocks: int) -> None:
        """Give one request that decodes so many blocks."""

    @abstractmethod
    def restore(self, request: Request, tokens: int) -> None:
        """Give a swapped-out request blocks for its computed tokens and ``tokens`` more as it comes back."""

    @abstractmethod
    def release(self, request: Request, granted_tokens: int = 0, comes_back: bool = False) -> None:
        """Take back all blocks of a request, those for ``granted_tokens`` not computed yet among them.

        One that ``comes_back`` may find again what it leaves behind.
        """

    def forget(self, request: Request) -> None:
        """A waiting request will not come back: nothing of it need be kept."""

    def computed(self, request: Request) -> None:
        """Take note that a request has computed the chunk of its prompt that it was given blocks for."""

    def publish_generated(self, request: Request, tokens: int) -> None:
        """Let others find what a request that decodes has generated, up to its first ``tokens``: a no-op by default."""

    def can_fork(self, parent: Request) -> bool:
        """Whether a sequence could share the blocks of a running one, with a partly filled last block of its own."""
        return False

    def fork(self, parent: Request, child: Request) -> Sequence[BlockCopy]:
        """Let ``child`` begin with all that a running request has computed.

        Both hold the same full blocks. A partly filled one is copied at once, as both write into it next: what an
        engine must copy before its next step is returned.
        """
        raise AssertionError(f"{type(self).__name__} cannot share blocks between sequences")

    def block_table(self, request: Request, new_tokens: int = 0, group: int = 0) -> Sequence[int]:
        """The blocks of a running request in order, for ``new_tokens`` of the step just planned too.

        Where layers are in several groups, each has a table; -1 stands for blocks that have left the group's window.
        Not to be kept or changed: it is the memory's own. Only for memory that is ``numbered``.
        """
        raise AssertionError(f"{type(self).__name__} only counts blocks")

    def held_blocks(self, request: Request) -> list[int]:
        """All blocks that a running request holds between two steps, of all groups one after the other."""
        return list(self.block_table(request)[: self.blocks_for(request.tokens_in_memory)])

    def decodes(self, request: Request) -> None:
        """A request has joined the decode pool, or was moved in it: told only where memory ``releases``."""

    def pauses(self, request: Request) -> None:
        """A request leaves its place in the decode pool: told only where memory ``releases``."""

    def slide(self, request: Request, tokens_before: int) -> None:
        """Take back what has left the windows of a request that had computed ``tokens_before`` a step ago."""

    def slide_decoding(self, pool: DecodePool) -> None:
        """Take back what has left windows with the last step of all that decode."""

    @abstractmethod
    def check(self, held_tokens: Iterable[tuple[Request, int]]) -> None:
        """Recount the blocks of all running requests; raises AssertionError where the books are wrong."""
