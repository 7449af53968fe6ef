"""Paged KV memory of a model with sliding windows, block by block, with a prefix cache."""

from collections.abc import Iterable, Sequence
from itertools import chain

from simcore.core.batch_plan import BlockCopy
from simcore.core.decode_pool import DecodePool
from simcore.core.request import Request
from simcore.memory.block_pool import BlockPool, Expiry
from simcore.memory.free_order import FreeOrder
from simcore.memory.group_index import GroupIndex
from simcore.memory.group_paging import GroupPaging
from simcore.memory.group_table import GroupTable, check_tables
from simcore.memory.kv_groups import KvCacheLayout
from simcore.memory.request_keys import Namespace, RequestKeys, one_for_all


class KVGroupManager(GroupPaging):
    """Does what ``KVBlockManager`` does for layers in groups, of which some slide, as vLLM's hybrid manager does.

    A request has one block table for each group, and all groups share one pool of blocks. A block that has left its
    group's window is free, but can be found until others take it; ``GroupIndex`` says which prefixes are found.

    Eviction policies other than by release know that a block of a full group is of no use without those before it; in a
    sliding group each is worth what it is worth alone. With an ``expiry``, decode steps must be planned one by one, for
    each tells when its blocks became free.
    """

    numbered = True

    __slots__ = (
        "_decoding",
        "_index",
        "_keys",
        "_pinned_ends",
        "_pool",
        "_prefix_caching",
        "_tables",
        "_unsettled",
        "_withdraw_uncomputed",
        "forgets",
        "timed",
    )

    def __init__(
        self,
        total_blocks: int,
        block_size_tokens: int,
        layout: KvCacheLayout,
        max_chunk_tokens: int,
        prefix_caching: bool = False,
        namespace: Namespace = one_for_all,
        order: FreeOrder | None = None,
        expiry: Expiry | None = None,
        withdraw_uncomputed: bool = False,
    ) -> None:
        super().__init__(total_blocks, block_size_tokens, layout, max_chunk_tokens)
        self._withdraw_uncomputed = withdraw_uncomputed
        self.timed = expiry is not None
        self.forgets = self._prefix_caching = prefix_caching
        self._pool = BlockPool(total_blocks, order, expiry)
        self._index = GroupIndex(self._pool, layout)
        self._keys = RequestKeys(block_size_tokens, namespace)
        self._tables: dict[int, list[GroupTable]] = {}
        self._unsettled: list[int] = []
        self._pinned_ends: set[int] = set()
        # A block leaves the window of a member in steps that its origin, modulo the block size, tells.
        self._decoding: list[dict[int, Request]] = [{} for _ in range(block_size_tokens)]

    def cached_prefix(self, request: Request) -> tuple[int, int]:
        """Tokens of a waiting request that are in the cache, and how many of their blocks others hold."""
        if not self._prefix_caching:
            return 0, 0
        usable = (request.tokens_to_compute - 1) // self.block_size_tokens
        keys = list(self._keys.of(request).between(0, usable))
        del keys[self._index.longest_hit(keys) :]
        cached_tokens = len(keys) * self.block_size_tokens
        held = sum(self._pool.held(self._index.in_sight(keys, place)) for place in range(self.blocks_each))
        return cached_tokens, held

    def admit(self, request: Request, cached_tokens: int, tokens: int) -> None:
        """Give a waiting request the cached blocks that it found, and blocks for ``tokens`` more."""
        hit = cached_tokens // self.block_size_tokens
        keys = list(self._keys.of(request).between(0, hit)) if hit else []
        tables = []
        for place, group in enumerate(self._layout.groups):
            found = self._index.in_sight(keys, place)
            self._use(self._pool.hold(found, request.priority))
            tables.append(GroupTable(found, group.released_blocks(cached_tokens), hit))
        self._tables[request.number] = tables
        self._lengthen(tables, cached_tokens + tokens)
        self._publish(request, cached_tokens + tokens)

    def restore(self, request: Request, tokens: int) -> None:
        """Give a swapped-out request blocks for its computed tokens and ``tokens`` more as it comes back."""
        passed = [group.released_blocks(request.computed_tokens) for group in self._layout.groups]
        self._tables[request.number] = tables = [GroupTable([], place, place) for place in passed]
        self._lengthen(tables, request.computed_tokens + tokens)
        self._publish(request, request.computed_tokens)

    def grow(self, request: Request, tokens: int) -> None:
        """Give a request that prefills the blocks for its next ``tokens`` tokens."""
        self._lengthen(self._tables[request.number], request.computed_tokens + tokens)
        self._publish(request, request.computed_tokens + tokens)

    def allocate(self, blocks: int) -> None:
        """Take blocks for requests that decode; asking for more than are free is a fault of the caller."""
        self._use(blocks)
        self._unsettled += self._pool.take(blocks)

    def extend(self, request: Request, blocks: int) -> None:
        """Give a request that decodes so many blocks."""
        self.allocate(blocks)

    def decodes(self, request: Request) -> None:
        """A request has joined the decode pool, or was moved in it."""
        self._decoding[request.origin % self.block_size_tokens][request.number] = request

    def pauses(self, request: Request) -> None:
        """A request leaves its place in the decode pool."""
        self._decoding[request.origin % self.block_size_tokens].pop(request.number, None)

    def slide(self, request: Request, tokens_before: int) -> None:
        """Take back what has left the windows of a request that had computed ``tokens_before`` a step ago."""
        self._pass(request, request.computed_tokens, chain.from_iterable(self._index.sliding.values()))

    def slide_decoding(self, pool: DecodePool) -> None:
        """Take back what has left windows with the last step of all that decode."""
        for window_tokens, places in self._index.sliding.items():
            phase = (pool.steps - window_tokens + 1) % self.block_size_tokens
            for request in self._decoding[phase].values():
                self._pass(request, pool.context_of(request.origin), places)

    def forget(self, request: Request) -> None:
        """A waiting request will not come back: its keys are given up."""
        self._keys.forget(request)

    def release(self, request: Request, granted_tokens: int = 0, comes_back: bool = False) -> None:
        """Take back all blocks of a request, those for ``granted_tokens`` not computed yet among them.

        What it ``comes_back`` for is found by its keys like anything else.
        """
        tables, computed_tokens = self._tables[request.number], request.computed_tokens
        tokens = computed_tokens + granted_tokens
        self._settle(tables, tokens)
        if granted_tokens and self._withdraw_uncomputed:
            tokens = computed_tokens
            for table in tables:
                self._pool.withdraw(table.blocks[tokens // self.block_size_tokens - table.passed :])
        self._publish(request, tokens - request.unknown_tokens)
        self.pauses(request)
        del self._tables[request.number]
        self._give_back(sum(self._pool.release(table.blocks) for table in tables))
        if not comes_back:
            self._keys.forget(request)

    def can_fork(self, parent: Request) -> bool:
        """Whether there is a free block in each group for what the parent's last, partly filled one holds."""
        return not parent.tokens_in_memory % self.block_size_tokens or self.blocks_each <= self.free_blocks

    def fork(self, parent: Request, child: Request) -> list[BlockCopy]:
        """Let ``child`` begin with all that a running request has computed; its content must say the same of that."""
        full_blocks, partial = divmod(parent.tokens_in_memory, self.block_size_tokens)
        tables = self._tables[parent.number]
        self._settle(tables, parent.tokens_in_memory)
        self._tables[child.number] = shared = []
        copies = []
        for table in tables:
            blocks = table.blocks[: full_blocks - table.passed]
            self._pool.hold(blocks, child.priority)
            shared.append(GroupTable(blocks, table.passed, min(table.published, full_blocks)))
            if partial:
                self._use(1)
                blocks += self._pool.take(1)
                copies.append(BlockCopy(table.blocks[len(blocks) - 1], blocks[-1]))
        return copies

    def load(self, request: Request, pinned_tokens: int) -> bool:
        """Have a prompt in the cache before anything runs, as far as memory goes, its first tokens for good.

        ``request`` stands for whoever computed it; it holds nothing afterwards. Pinned are whole blocks, of a sliding
        group those that the token after the pinned ones sees. Returns whether all of them have found room.
        """
        pool, pinned = self._pool, min(pinned_tokens, request.prompt_tokens) // self.block_size_tokens
        keys = list(self._keys.of(request).between(0, request.prompt_tokens // self.block_size_tokens))
        found = [pool.find(self._index.group_keys(keys, place)) for place in range(self.blocks_each)]
        for blocks in found:
            pool.hold(blocks, request.priority)
        room = pool.free_blocks // self.blocks_each
        for place, blocks in enumerate(found):
            first = len(blocks)
            blocks += pool.take(min(len(keys) - first, room))
            new_keys = self._index.group_keys(keys[first : len(blocks)], place)
            pool.publish(blocks, first, new_keys, request.priority, chained=place in self._index.full)
        shortest = min(map(len, found))
        end = min(pinned, shortest)
        if end:
            self._pinned_ends.add(keys[end - 1])
        for group, blocks in zip(self._layout.groups, found, strict=True):
            self.pinned_blocks += pool.hold_for_good(blocks[group.released_blocks(end * self.block_size_tokens) : end])
            passed = group.released_blocks(shortest * self.block_size_tokens)
            pool.release(blocks[:passed])
            pool.release(blocks[passed:])
        self.free_blocks = pool.free_blocks
        self._keys.forget(request)
        return end == pinned

    def total_for(self, request: Request) -> int:
        """Blocks that a request could have with a replica to itself, pinned ones that it is sure to find among them.

        That is all that are not pinned, and those of full groups as far as a pinned prefix is found whole: what sliding
        groups have pinned is of no use to a request that finds more than that prefix.
        """
        unpinned = self.unpinned_for(request)
        if not self._pinned_ends:
            return unpinned
        keys = self._keys.made(request).between(0, (request.prompt_tokens - 1) // self.block_size_tokens)
        ends = (place for place, key in enumerate(keys, start=1) if key in self._pinned_ends)
        return unpinned + len(self._index.full) * max(ends, default=0)

    def block_table(self, request: Request, new_tokens: int = 0, group: int = 0) -> Sequence[int]:
        """The blocks of a running request for one group of layers; -1 for those that have left its window."""
        tables = self._tables[request.number]
        self._settle(tables, request.tokens_in_memory + new_tokens)
        return [-1] * tables[group].passed + tables[group].blocks

    def held_blocks(self, request: Request) -> list[int]:
        """All blocks that a running request holds between two steps, of all groups one after the other."""
        tables = self._tables[request.number]
        self._settle(tables, request.tokens_in_memory)
        end = -(-request.tokens_in_memory // self.block_size_tokens)
        return [block for table in tables for block in table.blocks[: end - table.passed]]

    def check(self, held_tokens: Iterable[tuple[Request, int]]) -> None:
        """Recount the blocks of all running requests; raises AssertionError where the books are wrong."""
        held = list(held_tokens)
        check_tables(self._tables, self._layout, held, len(self._unsettled))
        tables = [table.blocks for tables in self._tables.values() for table in tables]
        self._pool.check([*tables, self._unsettled])
        if self._pool.free_blocks != self.free_blocks:
            raise AssertionError(f"{self._pool.free_blocks} blocks are free, noted {self.free_blocks}")

    def _lengthen(self, tables: Sequence[GroupTable], tokens: int) -> None:
        end = -(-tokens // self.block_size_tokens)
        for table in tables:
            blocks = end - table.end
            self._use(blocks)
            table.blocks += self._pool.take(blocks)

    def _settle(self, tables: Sequence[GroupTable], tokens: int) -> None:
        end = -(-tokens // self.block_size_tokens)
        for table in tables:
            missing = end - table.end
            if missing > 0:
                table.blocks += self._unsettled[-missing:]
                del self._unsettled[-missing:]

    def _publish(self, request: Request, tokens: int) -> None:
        for place in range(self.blocks_each):
            self._publish_group(request, place, tokens // self.block_size_tokens)

    def _publish_group(self, request: Request, place: int, end: int) -> None:
        table = self._tables[request.number][place]
        first = table.published
        if self._prefix_caching and first < end:
            table.published = end
            keys = self._index.group_keys(self._keys.of(request).between(first, end), place)
            chained = place in self._index.full
            self._pool.publish(table.blocks, first - table.passed, keys, request.priority, table.passed, chained)

    def _pass(self, request: Request, tokens: int, places: Iterable[int]) -> None:
        """Let go of the blocks that the token after ``tokens`` does not see any more; they can still be found."""
        tables = self._tables[request.number]
        for place in places:
            table, passed = tables[place], self._layout.groups[place].released_blocks(tokens)
            if passed > table.passed:
                self._settle(tables, tokens)
                self._publish_group(request, place, passed)
                gone = table.blocks[: passed - table.passed]
                del table.blocks[: passed - table.passed]
                table.passed = passed
                self._give_back(self._pool.release(gone))
