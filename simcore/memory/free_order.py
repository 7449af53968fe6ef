"""In which order free blocks give up what they cache."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

from policies.eviction import Eviction


@dataclass(slots=True)
class CachedBlock:
    """What an eviction policy sees of a block."""

    tokens_before: int
    priority: int
    recompute_flops: float
    size_bytes: int
    uses: int = 1


class FreeOrder(Protocol):
    """Free blocks that cache something."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[int]: ...

    def push(self, block: int) -> None:
        """A block became free."""

    def remove(self, block: int) -> None:
        """A free block is held again."""

    def pop(self) -> int:
        """Take out the block to give up; there must be one."""


class ReleaseOrder(OrderedDict[int, None]):
    """First released, first given up."""

    push = OrderedDict.setdefault  # at the tail, since it is not there yet
    remove = OrderedDict.__delitem__

    def pop(self) -> int:  # type: ignore[override]
        """Take out the block at the head."""
        return self.popitem(last=False)[0]


class RankedOrder:
    """What an eviction policy holds of least worth goes first, but no block before those that follow it in a prefix.

    A block is found by way of all before it, so one given up early would make those after it useless. ``describe``
    makes the facts of a block from the number of blocks before it and a level of priority.
    """

    def __init__(self, eviction: Eviction, describe: Callable[[int, int], CachedBlock]) -> None:
        self._eviction = eviction
        self._describe = describe
        self._facts: dict[int, CachedBlock] = {}
        self._key_of: dict[int, int] = {}
        self._parent_of: dict[int, int] = {}
        self._followers: dict[int, int] = {}
        self._entries: dict[int, tuple[float, int]] = {}
        self._heap: list[tuple[float, int, int]] = []
        self._blocked: dict[int, set[int]] = {}
        self._releases = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[int]:
        return iter(self._entries)

    def published(self, block: int, key: int, parent: int, place: int, priority: int) -> None:
        """A held block, at a ``place`` of its prefix, can now be found by its key, after the block with ``parent``."""
        self._facts[block] = self._describe(place, priority)
        self._key_of[block] = key
        if key not in self._parent_of:
            self._parent_of[key] = parent
            self._followers[parent] = self._followers.get(parent, 0) + 1

    def used(self, block: int, priority: int) -> None:
        """A further request, of this level, holds a block, which may not be published yet."""
        facts = self._facts.get(block)
        if facts is not None:
            facts.uses += 1
            facts.priority = min(facts.priority, priority)

    def forgotten(self, block: int, last_copy: bool) -> None:
        """A block has lost its key; nobody finds it any more if that was the ``last_copy``."""
        del self._facts[block]
        key = self._key_of.pop(block)
        if not last_copy:
            return
        parent = self._parent_of.pop(key)
        self._followers[parent] -= 1
        if not self._followers[parent]:
            del self._followers[parent]
            for freed in sorted(self._blocked.pop(parent, ())):
                heappush(self._heap, (*self._entries[freed], freed))

    def push(self, block: int) -> None:
        """Enter a block with what it is worth now."""
        self._releases += 1
        entry = (self._worth(block), self._releases)
        self._entries[block] = entry
        heappush(self._heap, (*entry, block))

    def _worth(self, block: int) -> float:
        return self._eviction.worth(self._facts[block])

    def remove(self, block: int) -> None:
        """Take out a block that is held again."""
        del self._entries[block]
        self._unblock(block)

    def pop(self) -> int:
        """Take out the block of least worth that no other follows; if all are followed by held ones, of all."""
        while self._heap:
            worth, release, block = heappop(self._heap)
            if self._entries.get(block) != (worth, release):
                continue
            if self._key_of[block] in self._followers:
                self._blocked.setdefault(self._key_of[block], set()).add(block)
                continue
            break
        else:
            block = min(self._entries, key=self._entries.__getitem__)
            worth, _ = self._entries[block]
            self._unblock(block)
        del self._entries[block]
        self._eviction.evicted(worth)
        return block

    def _unblock(self, block: int) -> None:
        blocked = self._blocked.get(self._key_of[block])
        if blocked is not None:
            blocked.discard(block)
            if not blocked:
                del self._blocked[self._key_of[block]]
