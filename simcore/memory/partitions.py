"""KV memory divided among tenants, so that none can push another's prefixes out."""

from collections.abc import Iterable, Mapping
from math import floor

from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.memory.block_manager import KVBlockManager
from simcore.memory.group_manager import KVGroupManager
from simcore.memory.radix_manager import KVRadixManager

PartManager = KVBlockManager | KVGroupManager | KVRadixManager


class KVPartitions:
    """A block manager of its own for each named tenant, and one for all others.

    Held and cached blocks are a tenant's own. So the same calls for its requests, at the same times, have the same
    answers (hits, refusals, blocks given up) whatever is called for others between them. Slots, token budget and queue
    are shared all the same: what one tenant sends can change when another's requests run, thereby which of them run at
    once, and through that what they find. Since blocks belong to one or the other, decode steps cannot be planned by
    counts over all requests.
    """

    partitioned = True
    forgets = True
    timed = False

    def __init__(self, named: Mapping[str, PartManager], others: PartManager) -> None:
        self._named = dict(named)
        self._others = others
        self._all = [*self._named.values(), others]
        self.block_size_tokens = others.block_size_tokens
        self.total_blocks = sum(part.total_blocks for part in self._all)
        self.peak_used_blocks = 0
        self.blocks_for = others.blocks_for
        self.blocks_to_grow = others.blocks_to_grow
        self.most_blocks = others.most_blocks
        self.releases = others.releases
        self.blocks_each = others.blocks_each

    @property
    def free_blocks(self) -> int:
        """Blocks that no request holds."""
        return sum(part.free_blocks for part in self._all)

    @property
    def used_blocks(self) -> int:
        """Blocks that some request holds."""
        return self.total_blocks - self.free_blocks

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

    def load(self, request: Request, pinned_tokens: int) -> bool:
        """Have a prompt in its tenant's cache before anything runs, its first tokens for good if there is room."""
        part = self.part_of(request)
        assert not isinstance(part, KVRadixManager)
        return part.load(request, pinned_tokens)

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
