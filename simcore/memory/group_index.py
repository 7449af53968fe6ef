"""Which prefixes can be served from the cached blocks of KV cache groups."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from simcore.memory.block_pool import BlockPool
from simcore.memory.kv_groups import KvCacheLayout


@dataclass(slots=True)
class GroupIndex:
    """Finds prefixes in a pool in which each block belongs to one group, by keys that say so.

    A prefix is found as far as every group can serve it: a group that attends to everything needs all its blocks, a
    sliding one just those that the next token sees. So a sliding group may serve a prefix of which it cannot serve the
    beginning (vLLM's ``HybridKVCacheCoordinator`` and ``SlidingWindowManager``). ``full`` are the places of groups
    that do not slide, ``sliding`` those that do by their windows.
    """

    pool: BlockPool
    layout: KvCacheLayout
    full: list[int] = field(default_factory=list)
    sliding: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, group in enumerate(self.layout.groups):
            if group.window_tokens is None:
                self.full.append(place)
            else:
                self.sliding.setdefault(group.window_tokens, []).append(place)

    def group_keys(self, keys: Iterable[int], place: int) -> Iterator[int]:
        """The keys of one group's blocks."""
        groups = len(self.layout.groups)
        return (key * groups + place for key in keys)

    def longest_hit(self, keys: Sequence[int]) -> int:
        """The most first blocks of ``keys`` of which every group has what the token after them sees."""
        hit = len(keys)
        for place in self.full:
            hit = len(self.pool.find(self.group_keys(keys[:hit], place)))
        settled = False
        while not settled:
            before = hit
            for places in self.sliding.values():
                hit = self._windowed_hit(keys, hit, places)
            settled = hit == before or len(self.sliding) == 1
        return hit

    def in_sight(self, keys: Sequence[int], place: int) -> list[int]:
        """The blocks of a group that the token after the blocks of ``keys``, a hit, sees."""
        group = self.layout.groups[place]
        passed = group.released_blocks(len(keys) * group.block_size_tokens)
        found = self.pool.find(self.group_keys(keys[passed:], place))
        if len(found) != len(keys) - passed:
            raise AssertionError(f"{len(found)} blocks of a group are cached, not {len(keys) - passed}")
        return found

    def _windowed_hit(self, keys: Sequence[int], most: int, places: Sequence[int]) -> int:
        """The longest hit of groups with one window, of at most so many blocks; looks from the end backwards."""
        group, groups, has = self.layout.groups[places[0]], len(self.layout.groups), self.pool.has
        hit = block = most
        first_in_sight = group.released_blocks(hit * group.block_size_tokens)
        while block > first_in_sight:
            block -= 1
            key = groups * keys[block]
            for place in places:
                if not has(key + place):
                    hit = block
                    first_in_sight = group.released_blocks(hit * group.block_size_tokens)
                    break
        return hit
