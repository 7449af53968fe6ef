"""Which prompts of a trace a prefix cache of some size would have found, without simulating the service."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from policies.eviction import Eviction
from policies.eviction.lru import LeastRecentlyUsed
from simcore.build.memory import describe_blocks, describe_runs
from simcore.core.content import BlockKeys, Run
from simcore.memory.block_pool import BlockPool
from simcore.memory.free_order import FreeOrder, RankedOrder, ReleaseOrder
from simcore.memory.kv_bytes import kv_bytes_per_token
from simcore.memory.leaf_order import LeafOrder
from simcore.memory.radix_tree import RadixTree
from simcore.models import ModelSpec
from simcore.workload.contents import Contents

NEVER = inf


@dataclass(frozen=True, slots=True)
class CachedPrompt:
    """A prompt of ``tokens`` tokens as the keys of its blocks; the last block may be partly filled."""

    keys: Sequence[int]
    tokens: int


def prompts_of(contents: Contents, block_tokens: int) -> list[CachedPrompt]:
    """The prompts of a trace whose contents are told block by block.

    The last block of a prompt, partly filled or not, counts as the block that its id names.
    """
    prompts = []
    for content in contents:
        *others, last = content.prompt
        tokens = last.tokens + sum(run.tokens for run in others)
        blocks = -(-tokens // block_tokens)
        filled = Run(last.first, last.tokens + blocks * block_tokens - tokens)
        keys = BlockKeys([*others, filled], block_tokens)
        prompts.append(CachedPrompt(list(keys.between(0, blocks)), tokens))
    return prompts


@dataclass(frozen=True, slots=True)
class CacheReplay:
    """What a replay found: ``hit_tokens`` of ``prompt_tokens``; ``capacity_blocks`` is None without a bound."""

    requests: int
    prompt_tokens: int
    hit_tokens: int
    capacity_blocks: int | None

    @property
    def hit_rate(self) -> float | None:
        """Share of the prompt tokens that was found; None of no tokens."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else None


class ClairvoyantOrder(RankedOrder):
    """Gives up the block that is needed farthest in the future (Belady, IBM Systems Journal 5(2), 1966).

    No policy finds more blocks, since whoever needs a block needs all before it: the farthest is never one that another
    kept block depends on.
    """

    def __init__(self, prompts: Sequence[CachedPrompt], eviction: Eviction, spec: ModelSpec, block_tokens: int) -> None:
        super().__init__(eviction, describe_blocks(spec, block_tokens, 1))
        self._uses: dict[int, list[int]] = {}
        for index in reversed(range(len(prompts))):
            for key in prompts[index].keys:
                self._uses.setdefault(key, []).append(index)

    def reached(self, prompt: CachedPrompt) -> None:
        """This prompt is the next; its own uses are no longer in the future."""
        for key in prompt.keys:
            self._uses[key].pop()

    def _worth(self, block: int) -> float:
        uses = self._uses[self._key_of[block]]
        return -uses[-1] if uses else -NEVER


def replay_cache(
    prompts: Sequence[CachedPrompt],
    block_tokens: int,
    capacity_blocks: int | None,
    eviction: Eviction | None,
    spec: ModelSpec,
) -> CacheReplay:
    """Let each prompt in turn find, compute and leave its blocks; ``eviction`` None is clairvoyant.

    ``spec`` is the model by whose work and bytes a policy may weigh. Of a prompt larger than the cache, the head is
    kept.
    """
    total = _blocks(prompts, capacity_blocks)
    order = _order(prompts, block_tokens, eviction, spec)
    pool = BlockPool(total, order)
    hit_tokens = 0
    for prompt in prompts:
        keys = prompt.keys[:total]
        found = pool.find(keys)
        hit_tokens += min(len(found) * block_tokens, prompt.tokens)
        if isinstance(order, ClairvoyantOrder):
            order.reached(prompt)
        pool.hold(found)
        table = found + pool.take(len(keys) - len(found))
        pool.publish(table, len(found), keys[len(found) :])
        pool.release(table)
    return CacheReplay(len(prompts), sum(prompt.tokens for prompt in prompts), hit_tokens, capacity_blocks)


def replay_radix_cache(
    prompts: Sequence[CachedPrompt], block_tokens: int, capacity_blocks: int | None, eviction: Eviction, spec: ModelSpec
) -> CacheReplay:
    """The same with a radix tree, which gives up whole leaves: the unshared rest of a prompt, or none of it.

    Keys must be chained: equal only if all before them are.
    """
    total = _blocks(prompts, capacity_blocks)
    ranked = not eviction.by_release
    describe = describe_runs(spec, block_tokens, kv_bytes_per_token(spec))
    tree = RadixTree(LeafOrder(eviction, describe) if ranked else LeafOrder())
    hit_tokens, blank = 0, total
    for prompt in prompts:
        keys = prompt.keys[:total]
        known, found = tree.match(keys.__getitem__, len(keys))
        hit_tokens += min(found * block_tokens, prompt.tokens)
        tree.hold(known, tree.root)
        needed = len(keys) - found
        while blank < needed:
            blank += len(tree.evict())
        blank -= needed
        last, _ = tree.insert(known, keys[found:], range(needed))
        tree.hold(last, known)
        tree.release(last)
    return CacheReplay(len(prompts), sum(prompt.tokens for prompt in prompts), hit_tokens, capacity_blocks)


def _blocks(prompts: Sequence[CachedPrompt], capacity_blocks: int | None) -> int:
    """The capacity, but no more blocks than there are, since more would never be filled."""
    distinct = len({key for prompt in prompts for key in prompt.keys})
    return distinct if capacity_blocks is None else min(distinct, capacity_blocks)


def _order(prompts: Sequence[CachedPrompt], block_tokens: int, eviction: Eviction | None, spec: ModelSpec) -> FreeOrder:
    if eviction is None:
        return ClairvoyantOrder(prompts, LeastRecentlyUsed(), spec, block_tokens)
    if eviction.by_release:
        return ReleaseOrder()
    return RankedOrder(eviction, describe_blocks(spec, block_tokens, kv_bytes_per_token(spec)))
