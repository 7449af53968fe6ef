"""Paged KV memory with block tables and a prefix cache."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from simcore.core.batch_plan import BlockCopy
from simcore.core.content import BlockKeys
from simcore.core.request import UNSET, Request
from simcore.memory.block_pool import BlockListener, BlockPool, Expiry
from simcore.memory.free_order import FreeOrder
from simcore.memory.paging import Paging
from simcore.memory.request_keys import Namespace, RequestKeys, one_for_all


class KVBlockManager(Paging):
    """Block tables of the requests of one replica over a pool of blocks.

    With ``prefix_caching``, full blocks are published as soon as the step is planned that computes their last token
    (while prefilling) or when their request leaves (what it generated), and a waiting request begins with the published
    blocks of its prefix. At least one of its tokens is always computed, for the next is sampled from it. ``namespace``
    says who shares with whom: requests of different namespaces never do. ``order`` is the one in which cached blocks
    are given up, by default that of their release; ``expiry`` bounds how long they may be found.

    Blocks for decoding requests are allocated for all of them together and settled when one leaves: until then, which
    of them has which makes no difference. Where others may say what a request generates, ``publish_generated`` lets
    them find it earlier.

    A request may lose its memory in the step that has just given it tokens. The blocks that these would have filled
    stay published, as in vLLM, though they were never computed; an engine that reads them must ``withdraw_uncomputed``.

    With ``tiers_below``, these take copies: it is noted what was published since ``newly_published`` was asked last.
    """

    numbered = True

    __slots__ = (
        "_keys",
        "_looked_up",
        "_noted",
        "_pool",
        "_prefix_caching",
        "_published_blocks",
        "_tables",
        "_tiers_below",
        "_unsettled",
        "_withdraw_uncomputed",
        "forgets",
    )

    def __init__(
        self,
        total_blocks: int,
        block_size_tokens: int,
        prefix_caching: bool = False,
        namespace: Namespace = one_for_all,
        order: FreeOrder | None = None,
        expiry: Expiry | None = None,
        tiers_below: bool = False,
        withdraw_uncomputed: bool = False,
    ) -> None:
        super().__init__(total_blocks, block_size_tokens)
        self._withdraw_uncomputed = withdraw_uncomputed
        self.forgets = self._prefix_caching = prefix_caching
        self._tiers_below = tiers_below
        self._noted: list[tuple[BlockKeys, int, int]] = []
        self._pool = BlockPool(total_blocks, order, expiry)
        self._tables: dict[int, list[int]] = {}
        self._unsettled: list[int] = []
        self._keys = RequestKeys(block_size_tokens, namespace)
        self._published_blocks: dict[int, int] = {}
        self._looked_up: tuple[tuple[int, int, int], list[int]] = ((UNSET, 0, 0), [])

    def cached_prefix(self, request: Request) -> tuple[int, int]:
        """Tokens of a waiting request that are in the cache, and how many of their blocks others hold."""
        found = self._find(request)
        return len(found) * self.block_size_tokens, self._pool.held(found)

    def admit(self, request: Request, cached_tokens: int, tokens: int) -> None:
        """Give a waiting request the cached blocks that it found, and blocks for ``tokens`` more."""
        self.admit_to_load(request, cached_tokens, tokens)
        self._publish(request, cached_tokens + tokens)

    def admit_to_load(self, request: Request, cached_tokens: int, tokens: int) -> None:
        """Do what ``admit`` does, but with ``tokens`` that will be loaded, and can be found only after ``loaded``."""
        found = self._find(request) if cached_tokens else []
        self._use(self._pool.hold(found, request.priority))
        new_blocks = self.blocks_for(cached_tokens + tokens) - len(found)
        self._use(new_blocks)
        self._tables[request.number] = found + self._pool.take(new_blocks)
        self._published_blocks[request.number] = len(found)

    def loaded(self, request: Request) -> None:
        """Let the blocks be found that a request has loaded; tiers need no copies of them."""
        self._publish(request, request.computed_tokens, copy=False)

    def restore(self, request: Request, tokens: int) -> None:
        """Give a swapped-out request blocks for its computed tokens and ``tokens`` more as it comes back."""
        blocks = self.blocks_for(request.computed_tokens + tokens)
        self._use(blocks)
        self._tables[request.number] = self._pool.take(blocks)
        self._published_blocks[request.number] = 0
        self._publish(request, request.computed_tokens)

    def grow(self, request: Request, tokens: int) -> None:
        """Give a request that prefills the blocks for its next ``tokens`` tokens."""
        blocks = self.blocks_to_grow(request.computed_tokens, tokens)
        self._use(blocks)
        self._tables[request.number] += self._pool.take(blocks)
        self._publish(request, request.computed_tokens + tokens)

    def allocate(self, blocks: int) -> None:
        """Take blocks for requests that decode; asking for more than are free is a fault of the caller."""
        self._use(blocks)
        self._unsettled += self._pool.take(blocks)

    def extend(self, request: Request, blocks: int) -> None:
        """Give a request that decodes so many blocks."""
        self.allocate(blocks)

    def forget(self, request: Request) -> None:
        """A waiting request will not come back: its keys are given up."""
        self._keys.forget(request)

    def publish_generated(self, request: Request, tokens: int) -> None:
        """Let the full blocks of the first ``tokens`` tokens of a request be found that decodes."""
        if self._prefix_caching and tokens // self.block_size_tokens > self._published_blocks[request.number]:
            self._settle(request, tokens)
            self._publish(request, tokens)

    def release(self, request: Request, granted_tokens: int = 0, comes_back: bool = False) -> None:
        """Take back all blocks of a request, those for ``granted_tokens`` not computed yet among them.

        What it ``comes_back`` for is found by its keys like anything else.
        """
        tokens = request.computed_tokens + granted_tokens
        self._settle(request, tokens)
        if granted_tokens and self._withdraw_uncomputed:
            tokens = request.computed_tokens
            self._pool.withdraw(self._tables[request.number][tokens // self.block_size_tokens :])
        self._publish(request, tokens - request.unknown_tokens)
        del self._published_blocks[request.number]
        self._give_back(self._pool.release(self._tables.pop(request.number)))
        if not comes_back:
            self._keys.forget(request)

    def can_fork(self, parent: Request) -> bool:
        """Whether there is a free block for what the parent's last, partly filled one holds."""
        return bool(self.free_blocks) or not parent.tokens_in_memory % self.block_size_tokens

    def report_to(self, listener: BlockListener) -> None:
        """See ``BlockPool.report_to``."""
        self._pool.report_to(listener)

    def prompt_keys(self, request: Request) -> list[int]:
        """The keys of the full blocks of a request's prompt, by which they are published here; nothing is kept."""
        return list(self._keys.made(request).between(0, request.prompt_tokens // self.block_size_tokens))

    def fork(self, parent: Request, child: Request) -> list[BlockCopy]:
        """Let ``child`` begin with all that a running request has computed; its content must say the same of that."""
        full_blocks, partial = divmod(parent.tokens_in_memory, self.block_size_tokens)
        table = self.block_table(parent)
        shared = list(table[:full_blocks])
        self._pool.hold(shared, child.priority)
        self._tables[child.number] = shared
        self._published_blocks[child.number] = min(self._published_blocks[parent.number], full_blocks)
        if not partial:
            return []
        self._use(1)
        shared += self._pool.take(1)
        return [BlockCopy(table[full_blocks], shared[-1])]

    def load(self, request: Request, pinned_tokens: int) -> bool:
        """Have a prompt in the cache before anything runs, as far as memory goes, its first tokens for good.

        ``request`` stands for whoever computed it; it holds nothing afterwards. Pinned are whole blocks; returns
        whether all of them have found room.
        """
        pool, block_size = self._pool, self.block_size_tokens
        found = pool.find(self._keys.of(request).between(0, request.prompt_tokens // block_size))
        pool.hold(found, request.priority)
        missing = request.prompt_tokens // block_size - len(found)
        table = found + pool.take(min(missing, pool.free_blocks))
        pool.publish(table, len(found), self._keys.of(request).between(len(found), len(table)), request.priority)
        pinned = table[: pinned_tokens // block_size]
        self.pinned_blocks += pool.hold_for_good(pinned)
        pool.release(table)
        self.free_blocks = pool.free_blocks
        self._keys.forget(request)
        return len(pinned) == min(pinned_tokens, request.prompt_tokens) // block_size

    def total_for(self, request: Request) -> int:
        """Blocks that a request could have with a replica to itself: those not pinned, and the pinned of its prefix."""
        unpinned = self.unpinned_for(request)
        if not self.pinned_blocks:
            return unpinned
        usable = (request.prompt_tokens - 1) // self.block_size_tokens
        return unpinned + self._pool.pinned_prefix(self._keys.made(request).between(0, usable))

    def keys_to_load(self, request: Request, cached_tokens: int) -> list[int]:
        """Keys of the blocks that a waiting request could take from below, after the cached ones that it found."""
        usable = (request.tokens_to_compute - 1) // self.block_size_tokens
        return list(self._keys.of(request).between(cached_tokens // self.block_size_tokens, usable))

    def newly_published(self) -> Iterator[tuple[list[int], int]]:
        """Prefixes of which blocks were published since this was asked last, and how many blocks are older.

        What has lost its block meanwhile is left out.
        """
        noted, self._noted = self._noted, []
        for keys, first, end in noted:
            prefix = list(keys.between(0, end))
            end = first + len(self._pool.find(prefix[first:]))
            if first < end:
                yield prefix[:end], first

    def block_table(self, request: Request, new_tokens: int = 0, group: int = 0) -> Sequence[int]:
        """The blocks of a running request, in order."""
        self._settle(request, request.tokens_in_memory + new_tokens)
        return self._tables[request.number]

    def check(self, held_tokens: Iterable[tuple[Request, int]]) -> None:
        """Recount the blocks of all running requests; raises AssertionError where the books are wrong."""
        unsettled = {
            request.number: self.blocks_for(tokens) - len(self._tables[request.number])
            for request, tokens in held_tokens
        }
        if unsettled.keys() != self._tables.keys() or sum(unsettled.values()) != len(self._unsettled):
            raise AssertionError(f"blocks not settled: recounted {unsettled}, noted {len(self._unsettled)}")
        self._pool.check(chain(self._tables.values(), [self._unsettled]))
        if self._pool.free_blocks != self.free_blocks:
            raise AssertionError(f"{self._pool.free_blocks} blocks are free, noted {self.free_blocks}")

    def _settle(self, request: Request, tokens: int) -> None:
        table = self._tables[request.number]
        missing = self.blocks_for(tokens) - len(table)
        if missing > 0:
            table += self._unsettled[-missing:]
            del self._unsettled[-missing:]

    def _find(self, request: Request) -> list[int]:
        if not self._prefix_caching:
            return []
        usable = (request.tokens_to_compute - 1) // self.block_size_tokens
        asked = request.number, usable, self._pool.changes
        if self._looked_up[0] != asked:  # who is admitted was looked up just before
            self._looked_up = asked, self._pool.find(self._keys.of(request).between(0, usable))
        return self._looked_up[1]

    def _publish(self, request: Request, tokens: int, copy: bool = True) -> None:
        if not self._prefix_caching:
            return
        first, end = self._published_blocks[request.number], tokens // self.block_size_tokens
        if first < end:
            self._published_blocks[request.number] = end
            keys = self._keys.of(request).between(first, end)
            self._pool.publish(self._tables[request.number], first, keys, request.priority)
            if self._tiers_below and copy:
                self._noted.append((self._keys.of(request), first, end))
