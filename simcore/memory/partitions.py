"""KV memory divided among tenants, so that none can push another's prefixes out."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import floor

from simcore.core.batch_plan import BlockCopy
from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.memory.block_manager import KVBlockManager
from simcore.memory.group_manager import KVGroupManager
from simcore.memory.kv_memory import KVMemory
from simcore.memory.radix_manager import KVRadixManager

PartManager = KVBlockManager | KVGroupManager | KVRadixManager


class KVPartitions(KVMemory):
    """A block manager of its own for each named tenant, and one for all others.

    Held and cached blocks are a tenant's own. So the same calls for its requests, at the same times, have the same
    answers (hits, refusals, blocks given up) whatever is called for others between them. Slots, token budget and queue
    are shared all the same: what one tenant sends can change when another's requests run, thereby which of them run at
    once, and through that what they find. Since blocks belong to one or the other, decode steps cannot be planned by
    counts over all requests.
    """

    partitioned = True
    numbered = True
    forgets = True

    __slots__ = (
        "_all",
        "_named",
        "_offsets",
        "_others",
        "block_size_tokens",
        "blocks_each",
        "peak_used_blocks",
        "releases",
        "total_blocks",
    )

    block_size_tokens: int
    total_blocks: int
    peak_used_blocks: int

    def __init__(self, named: Mapping[str, PartManager], others: PartManager) -> None:
        self._named = dict(named)
        self._others = others
        self._all = [*self._named.values(), others]
        self.block_size_tokens = others.block_size_tokens
        *self._offsets, self.total_blocks = accumulate((part.total_blocks for part in self._all), initial=0)
        self.peak_used_blocks = 0
        self.releases = others.releases
        self.blocks_each = others.blocks_each

    @property
    def free_blocks(self) -> int:
        """Blocks that no request holds."""
        return sum(part.free_blocks for part in self._all)

    def blocks_for(self, tokens: int) -> int:
        """Blocks that hold ``tokens`` tokens of one request, between two steps."""
        return self._others.blocks_for(tokens)

    def blocks_to_grow(self, held_tokens: int, new_tokens: int) -> int:
        """Further blocks that a request with ``held_tokens`` in memory needs for ``new_tokens`` more."""
        return self._others.blocks_to_grow(held_tokens, new_tokens)

    def most_blocks(self, tokens: int, request: Request | None = None) -> int:
        """The most blocks that a request, or any, holds at any time until so many tokens of it are computed."""
        return self._others.most_blocks(tokens, request)

    def part_of(self, request: Request) -> PartManager:
        """The memory that a request may use."""
        return self._named.get(request.tenant, self._others)

    def free_for(self, request: Request) -> int:
        """Blocks that a request could take."""
        return self.part_of(request).free_blocks

    @property
    def unpinned_blocks(self) -> int:
        """Blocks that are not held for good."""
        return sum(part.unpinned_blocks for part in self._all)

    def unpinned_for(self, request: Request) -> int:
        """Blocks that a request could have with a replica to itself, none of them pinned."""
        return self.part_of(request).unpinned_for(request)

    def total_for(self, request: Request) -> int:
        """Blocks that a request could have with a replica to itself, pinned ones that it is sure to find among them."""
        return self.part_of(request).total_for(request)

    def apart(self, one: Request, other: Request) -> bool:
        """Whether what one request gives up is of no use to the other."""
        return self.part_of(one) is not self.part_of(other)

    def cached_prefix(self, request: Request) -> tuple[int, int]:
        """Tokens of a waiting request that are in the cache, and how many of their blocks others hold."""
        return self.part_of(request).cached_prefix(request)

    def admit(self, request: Request, cached_tokens: int, tokens: int) -> None:
        """Give a waiting request the cached blocks that it found, and blocks for ``tokens`` more."""
        self.part_of(request).admit(request, cached_tokens, tokens)
        self._note_peak()

    def restore(self, request: Request, tokens: int) -> None:
        """Give a swapped-out request blocks for its computed tokens and ``tokens`` more as it comes back."""
        self.part_of(request).restore(request, tokens)
        self._note_peak()

    def grow(self, request: Request, tokens: int) -> None:
        """Give a request that prefills the blocks for its next ``tokens`` tokens."""
        self.part_of(request).grow(request, tokens)
        self._note_peak()

    def computed(self, request: Request) -> None:
        """Take note that a request has computed the chunk of its prompt that it was given blocks for."""
        self.part_of(request).computed(request)

    def decodes(self, request: Request) -> None:
        """A request has joined the decode pool, or was moved in it."""
        self.part_of(request).decodes(request)

    def pauses(self, request: Request) -> None:
        """A request leaves its place in the decode pool."""
        self.part_of(request).pauses(request)

    def slide(self, request: Request, tokens_before: int) -> None:
        """Take back what has left the windows of a request that had computed ``tokens_before`` a step ago."""
        self.part_of(request).slide(request, tokens_before)

    def slide_decoding(self, pool: DecodePool) -> None:
        """Take back what has left windows with the last step of all that decode."""
        for part in self._all:
            part.slide_decoding(pool)

    def extend(self, request: Request, blocks: int) -> None:
        """Give a request that decodes so many blocks."""
        self.part_of(request).allocate(blocks)
        self._note_peak()

    def allocate(self, blocks: int) -> None:
        """Blocks for nobody in particular: there are none here."""
        if blocks:
            raise AssertionError(f"{blocks} blocks asked for, by no request")

    def forget(self, request: Request) -> None:
        """A waiting request will not come back."""
        self.part_of(request).forget(request)

    def can_fork(self, parent: Request) -> bool:
        """Whether a sequence could share the blocks of a running one of the same tenant."""
        return self.part_of(parent).can_fork(parent)

    def fork(self, parent: Request, child: Request) -> Sequence[BlockCopy]:
        """Let ``child``, of the same tenant, begin with all that a running request has computed."""
        part = self.part_of(parent)
        offset = self._offsets[self._all.index(part)]
        copies = part.fork(parent, child)
        self._note_peak()
        return [BlockCopy(offset + source, offset + target) for source, target in copies]

    def block_table(self, request: Request, new_tokens: int = 0, group: int = 0) -> Sequence[int]:
        """The blocks of a running request in order, numbered through all parts."""
        part = self.part_of(request)
        offset = self._offsets[self._all.index(part)]
        return [block if block < 0 else offset + block for block in part.block_table(request, new_tokens, group)]

    def held_blocks(self, request: Request) -> list[int]:
        """All blocks that a running request holds between two steps, numbered through all parts."""
        part = self.part_of(request)
        offset = self._offsets[self._all.index(part)]
        return [offset + block for block in part.held_blocks(request)]

    def load(self, request: Request, pinned_tokens: int) -> bool:
        """Have a prompt in its tenant's cache before anything runs, its first tokens for good if there is room."""
        part = self.part_of(request)
        assert not isinstance(part, KVRadixManager)
        return part.load(request, pinned_tokens)

    def publish_generated(self, request: Request, tokens: int) -> None:
        """Let others find what a request has generated while it still decodes."""
        self.part_of(request).publish_generated(request, tokens)

    def release(self, request: Request, granted_tokens: int = 0, comes_back: bool = False) -> None:
        """Take back all blocks of a request, those for ``granted_tokens`` not computed yet among them."""
        self.part_of(request).release(request, granted_tokens, comes_back)

    def check(self, held_tokens: Iterable[tuple[Request, int]]) -> None:
        """Recount the blocks of all running requests; raises AssertionError where the books are wrong."""
        held = list(held_tokens)
        for part in self._all:
            part.check([(request, tokens) for request, tokens in held if self.part_of(request) is part])

    def _note_peak(self) -> None:
        self.peak_used_blocks = max(self.peak_used_blocks, self.used_blocks)


def divide_blocks(total_blocks: int, shares: Mapping[str, float]) -> tuple[dict[str, int], int]:
    """Whole blocks of each named tenant, its share rounded down, and what is left for all others."""
    named = {tenant: floor(total_blocks * share) for tenant, share in shares.items()}
    return named, total_blocks - sum(named.values())
