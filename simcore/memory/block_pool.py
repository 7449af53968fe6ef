"""The blocks of one replica, one by one: who is held how often, who is free, and what the free ones still cache."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile

from simcore.memory.blank_blocks import BlankBlocks
from simcore.memory.free_order import FreeOrder, RankedOrder, ReleaseOrder

NO_KEY = -1
BlockListener = Callable[[int, bool], None]
"""Told of a key, and whether a block can be found by it from now on."""


@dataclass(frozen=True, slots=True)
class Expiry:
    """How long a block that nobody holds may still be found, and the clock by which."""

    after_s: float
    now_s: Callable[[], float]


class BlockPool:
    """Blocks 0 to ``total_blocks`` - 1, each held by so many requests, or free.

    A full block can be published under a key, by which others find it and hold it too. Free blocks without a key are
    taken first, then the others from the head of the queue in which they wait; a block forgets its key when it is
    taken, and not before. Several blocks may have the same key, since two requests can compute the same at the same
    time; the first is found. These are the rules of vLLM V1 (its ``BlockPool`` and ``FreeKVCacheBlockQueue``), whose
    queue is in the order of release; ``order`` may be another. With an ``expiry``, a block that has been free for so
    long is not found any more.
    """

    __slots__ = (
        "_blank",
        "_cached",
        "_expiry",
        "_free_since_s",
        "_keys",
        "_later_copies",
        "_listener",
        "_pinned",
        "_published",
        "_ranked",
        "changes",
        "references",
    )

    def __init__(self, total_blocks: int, order: FreeOrder | None = None, expiry: Expiry | None = None) -> None:
        self.changes = 0
        """Counts whatever may change what is found."""
        self.references: list[int] = []
        self._keys: list[int] = []
        self._blank = BlankBlocks(total_blocks)
        self._cached: FreeOrder = ReleaseOrder() if order is None else order
        self._ranked = order if isinstance(order, RankedOrder) else None
        self._expiry = expiry
        self._free_since_s: list[float] = []
        self._published: dict[int, int] = {}
        self._later_copies: dict[int, OrderedDict[int, None]] = {}
        self._pinned: set[int] = set()
        self._listener: BlockListener | None = None

    def report_to(self, listener: BlockListener) -> None:
        """Tell of each key when it can be found from now on, and when it cannot any more; at first of all there are."""
        self._listener = listener
        for key in self._published:
            listener(key, True)

    @property
    def free_blocks(self) -> int:
        """Blocks that nobody holds."""
        return len(self._blank) + len(self._cached)

    @property
    def cached_blocks(self) -> int:
        """Blocks that nobody holds and that still can be found by their keys."""
        return len(self._cached)

    def has(self, key: int) -> bool:
        """Whether a block is published under a key."""
        block = self._published.get(key)
        if block is None or self._expiry is None:
            return block is not None
        return not self._expired(block, self._expiry) or self._fresh_copy(key, self._expiry) is not None

    def find(self, keys: Iterable[int]) -> list[int]:
        """The published blocks of ``keys``, up to the first that is not there."""
        published, expiry = self._published, self._expiry
        if expiry is None:
            return list(iter(map(published.get, keys).__next__, None))
        self.changes += 1  # as more expires with time
        found: list[int] = []
        for key in keys:
            block = published.get(key)
            if block is not None and self._expired(block, expiry):
                block = self._fresh_copy(key, expiry)
            if block is None:
                break
            found.append(block)
        return found

    def _fresh_copy(self, key: int, expiry: Expiry) -> int | None:
        """The first later copy that has not expired: it is found however long the ones before it stay around."""
        copies = self._later_copies.get(key, ())
        return next((block for block in copies if not self._expired(block, expiry)), None)

    def _expired(self, block: int, expiry: "Expiry") -> bool:
        return not self.references[block] and expiry.now_s() - self._free_since_s[block] >= expiry.after_s

    def take(self, blocks: int) -> list[int]:
        """Hold so many free blocks, those that cache nothing first; the others forget what they cached."""
        references = self.references
        taken = self._blank.take(blocks)
        if self._blank.touched > len(references):
            self._grow(self._blank.touched - len(references))
        if len(taken) < blocks:
            taken += self._given_up(blocks - len(taken))
        for block in taken:
            references[block] = 1
        return taken

    def _given_up(self, blocks: int) -> list[int]:
        """So many free blocks in the order in which they give up what they cache."""
        given_up: list[int] = []
        if self._ranked is not None:  # what one gives up decides which is next
            for _ in range(blocks):
                given_up.append(self._ranked.pop())
                self._forget(given_up[-1])
            return given_up
        pop, keys, published, later_copies = self._cached.pop, self._keys, self._published, self._later_copies
        self.changes += 1
        for _ in range(blocks):
            block = pop()
            given_up.append(block)
            key = keys[block]
            if key in later_copies or self._listener is not None:
                self._forget(block)
            else:
                del published[key]
                keys[block] = NO_KEY
        return given_up

    def _grow(self, blocks: int) -> None:
        """Keep books of so many more blocks, which are taken for the first time."""
        self.references += [0] * blocks
        self._keys += [NO_KEY] * blocks
        self._free_since_s += [0.0] * (blocks if self._expiry is not None else 0)

    def hold(self, blocks: Sequence[int], priority: int = 0) -> int:
        """Hold found blocks once more, for a request of this level; returns how many of them were free."""
        were_free = 0
        references, remove = self.references, self._cached.remove
        for block in blocks:
            holders = references[block]
            references[block] = holders + 1
            if not holders:
                remove(block)
                were_free += 1
        if self._ranked is not None:
            for block in blocks:
                self._ranked.used(block, priority)
        return were_free

    def hold_for_good(self, blocks: Sequence[int]) -> int:
        """Hold held, published blocks once more, never to be given up; returns how many were not pinned before.

        From now on they are found before any other copies.
        """
        self.changes += 1
        fresh = [block for block in blocks if block not in self._pinned]
        self._pinned.update(fresh)
        for block in fresh:
            self.references[block] += 1
            key = self._keys[block]
            first = self._published[key]
            if first != block:
                copies = self._later_copies[key]
                del copies[block]
                copies[first] = None
                copies.move_to_end(first, last=False)
                self._published[key] = block
        return len(fresh)

    def pinned_prefix(self, keys: Iterable[int]) -> int:
        """How many first blocks of a prefix are held for good."""
        return sum(1 for _ in takewhile(self._pinned.__contains__, map(self._published.get, keys)))

    def held(self, blocks: Sequence[int]) -> int:
        """How many of these blocks somebody holds."""
        return len(blocks) - list(map(self.references.__getitem__, blocks)).count(0)

    def release(self, blocks: Sequence[int]) -> int:
        """Give up a block table, its last block first; returns how many of its blocks are free now."""
        freed: list[int] = []
        references = self.references
        for block in reversed(blocks):
            holders = references[block] - 1
            references[block] = holders
            if not holders:
                freed.append(block)
        blank, push, keys = self._blank.given_back, self._cached.push, self._keys
        for block in freed:
            if keys[block] == NO_KEY:
                blank.append(block)
            else:
                push(block)
        if self._expiry is not None:
            for block in freed:
                self._free_since_s[block] = self._expiry.now_s()
        return len(freed)

    def publish(
        self,
        table: Sequence[int],
        first: int,
        keys: Iterable[int],
        priority: int = 0,
        before: int = 0,
        chained: bool = True,
    ) -> None:
        """Let the full blocks of a table, from ``first``, be found by their keys; the request has this level.

        The table begins after ``before`` blocks of the prefix; if ``chained``, no block is of use without those before.
        """
        self.changes += 1
        published, known, listener = self._published, self._keys, self._listener
        for place, key in enumerate(keys, start=first):
            block = table[place]
            if known[block] == key:
                continue  # another sequence that holds it has published it
            known[block] = key
            if published.setdefault(key, block) != block:
                self._later_copies.setdefault(key, OrderedDict())[block] = None
            elif listener is not None:
                listener(key, True)
            if self._ranked is not None:
                parent = known[table[place - 1]] if place and chained else NO_KEY
                self._ranked.published(block, key, parent, before + place, priority)

    def withdraw(self, blocks: Iterable[int]) -> None:
        """Take back the keys of held blocks that were published and then not computed."""
        for block in blocks:
            if self._keys[block] != NO_KEY:
                self._forget(block)

    def _forget(self, block: int) -> None:
        self.changes += 1
        key = self._keys[block]
        self._keys[block] = NO_KEY
        copies = self._later_copies.get(key)
        if self._ranked is not None:
            self._ranked.forgotten(block, last_copy=copies is None)
        if copies is None:
            del self._published[key]
            if self._listener is not None:
                self._listener(key, False)
            return
        if self._published[key] == block:
            self._published[key] = copies.popitem(last=False)[0]
        else:
            del copies[block]
        if not copies:
            del self._later_copies[key]

    def check(self, tables: Iterable[Collection[int]]) -> None:
        """Recount everything from the block tables; raises AssertionError where the books are wrong."""
        references = [0] * len(self.references)
        for table in chain(tables, [self._pinned]):
            for block in table:
                references[block] += 1
        if references != self.references:
            raise AssertionError("reference counts differ from the block tables")
        free = [block for block, count in enumerate(references) if not count]
        if free != sorted([*self._blank.given_back, *self._cached]):
            raise AssertionError("the free blocks are not those that nobody holds")
        if any(self._keys[block] == NO_KEY for block in self._cached) or any(
            self._keys[block] != NO_KEY for block in self._blank.given_back
        ):
            raise AssertionError("the free blocks are not told apart by whether they cache something")
        keys, published, copies = self._keys, self._published, self._later_copies
        # All that is noted is so, each block once; since as many blocks have a key, nothing is left out.
        noted = len(published) + sum(map(len, copies.values()))
        if (
            noted != len(keys) - keys.count(NO_KEY)
            or any(keys[block] != key for key, block in published.items())
            or any(
                published.get(key, block) == block or keys[block] != key
                for key, blocks in copies.items()
                for block in blocks
            )
        ):
            raise AssertionError("the index of published blocks differs from their keys")
