"""The blocks of one replica, one by one: who is held how often, who is free, and what the free ones still cache."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence

NO_KEY = -1


class BlockPool:
    """Blocks 0 to ``total_blocks`` - 1, each held by so many requests, or free.

    A full block can be published under a key, by which others find it and hold it too. Free blocks without a key are
    taken first, then the others from the head of the queue in which they wait; a block forgets its key when it is
    taken, and not before. Several blocks may have the same key, since two requests can compute the same at the same
    time; the first is found. These are the rules of vLLM V1 (its ``BlockPool`` and ``FreeKVCacheBlockQueue``).
    """

    __slots__ = ("_blank", "_cached", "_keys", "_later_copies", "_published", "references")

    def __init__(self, total_blocks: int) -> None:
        self.references = [0] * total_blocks
        self._keys = [NO_KEY] * total_blocks
        self._blank = list(range(total_blocks - 1, -1, -1))
        self._cached: OrderedDict[int, None] = OrderedDict()
        self._published: dict[int, int] = {}
        self._later_copies: dict[int, OrderedDict[int, None]] = {}

    @property
    def free_blocks(self) -> int:
        """Blocks that nobody holds."""
        return len(self._blank) + len(self._cached)

    @property
    def cached_blocks(self) -> int:
        """Blocks that nobody holds and that still can be found by their keys."""
        return len(self._cached)

    def find(self, keys: Iterable[int]) -> list[int]:
        """The published blocks of ``keys``, up to the first that is not there."""
        found: list[int] = []
        published = self._published
        for key in keys:
            block = published.get(key)
            if block is None:
                break
            found.append(block)
        return found

    def take(self, blocks: int) -> list[int]:
        """Hold so many free blocks, those that cache nothing first; the others forget what they cached."""
        blank, cached, references = self._blank, self._cached, self.references
        taken = blank[: -blocks - 1 : -1]
        del blank[len(blank) - len(taken) :]
        for _ in range(blocks - len(taken)):
            block = cached.popitem(last=False)[0]
            self._forget(block)
            taken.append(block)
        for block in taken:
            references[block] = 1
        return taken

    def hold(self, blocks: Sequence[int]) -> int:
        """Hold found blocks once more; returns how many of them were free."""
        were_free = 0
        references = self.references
        for block in blocks:
            if not references[block]:
                del self._cached[block]
                were_free += 1
            references[block] += 1
        return were_free

    def held(self, blocks: Sequence[int]) -> int:
        """How many of these blocks somebody holds."""
        references = self.references
        return sum(references[block] > 0 for block in blocks)

    def release(self, blocks: Sequence[int]) -> int:
        """Give up a block table, its last block first; returns how many of its blocks are free now."""
        freed = 0
        blank, cached, keys, references = self._blank, self._cached, self._keys, self.references
        for block in reversed(blocks):
            references[block] -= 1
            if references[block]:
                continue
            freed += 1
            if keys[block] == NO_KEY:
                blank.append(block)
            else:
                cached[block] = None
        return freed

    def publish(self, blocks: Sequence[int], keys: Iterable[int]) -> None:
        """Let held full blocks be found by their keys."""
        published = self._published
        for block, key in zip(blocks, keys, strict=True):
            self._keys[block] = key
            if published.setdefault(key, block) != block:
                self._later_copies.setdefault(key, OrderedDict())[block] = None

    def withdraw(self, blocks: Iterable[int]) -> None:
        """Take back the keys of held blocks that were published and then not computed."""
        for block in blocks:
            if self._keys[block] != NO_KEY:
                self._forget(block)

    def _forget(self, block: int) -> None:
        key = self._keys[block]
        self._keys[block] = NO_KEY
        copies = self._later_copies.get(key)
        if copies is None:
            del self._published[key]
            return
        if self._published[key] == block:
            self._published[key] = copies.popitem(last=False)[0]
        else:
            del copies[block]
        if not copies:
            del self._later_copies[key]

    def check(self, tables: Iterable[Sequence[int]]) -> None:
        """Recount everything from the block tables; raises AssertionError where the books are wrong."""
        references = [0] * len(self.references)
        for table in tables:
            for block in table:
                references[block] += 1
        if references != self.references:
            raise AssertionError("reference counts differ from the block tables")
        free = [block for block, count in enumerate(references) if not count]
        if free != sorted([*self._blank, *self._cached]):
            raise AssertionError("the free blocks are not those that nobody holds")
        if any(self._keys[block] == NO_KEY for block in self._cached) or any(
            self._keys[block] != NO_KEY for block in self._blank
        ):
            raise AssertionError("the free blocks are not told apart by whether they cache something")
        keys: dict[int, set[int]] = {}
        for block, key in enumerate(self._keys):
            if key != NO_KEY:
                keys.setdefault(key, set()).add(block)
        noted = {key: {block, *self._later_copies.get(key, ())} for key, block in self._published.items()}
        if keys != noted or not self._later_copies.keys() <= keys.keys():
            raise AssertionError("the index of published blocks differs from their keys")
