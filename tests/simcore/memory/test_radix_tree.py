"""The radix tree against plain lists of what was entered."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.cache_replay import CachedPrompt, replay_cache, replay_radix_cache
from policies.registry import policy_class
from simcore.build.memory import describe_runs
from simcore.core.content import BlockKeys, Run
from simcore.memory.block_pool import Expiry
from simcore.memory.leaf_order import LeafOrder
from simcore.memory.radix_tree import RadixTree
from simcore.models import load_model

SPEC = load_model("smollm2-135m")
LRU = policy_class("eviction", "lru")()


def keys_of(text):
    """Chained keys of single tokens."""
    return list(BlockKeys([Run(10 * token, 1) for token in text], 1).between(0, len(text)))


class Cache:
    """A tree, and blocks without end; the nodes that ``hold`` keeps are named by their texts."""

    def __init__(self, order=None, expiry=None):
        self.tree = RadixTree(LeafOrder() if order is None else order, expiry)
        self.next_block = 0

    def enter(self, text, priority=0):
        """A request that finds what there is, enters the rest and leaves; returns how many blocks it found."""
        node, found = self.hold(text, priority)
        self.tree.release(node)
        return found

    def hold(self, text, priority=0):
        tree, keys = self.tree, keys_of(text)
        above, found = tree.match(keys.__getitem__, len(keys))
        tree.hold(above, tree.root, priority)
        blocks = range(self.next_block, self.next_block + len(keys) - found)
        self.next_block += len(blocks)
        node, known = tree.insert(above, keys[found:], blocks)
        assert known == 0
        tree.hold(node, above, priority)
        return node, found

    def found(self, text):
        return self.tree.find(keys_of(text).__getitem__, len(text))[0]

    def runs(self):
        return sorted(len(node.keys) for node in self.tree)


def common_prefix(one, other):
    return next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None)


def longest_common_prefix(text, entered):
    lengths = [common_prefix(text, other) for other in entered]
    return max(
        (min(len(text), len(other)) if length is None else length)
        for length, other in zip(lengths, entered, strict=True)
    )


texts = st.lists(st.integers(0, 2), min_size=1, max_size=12)


@settings(max_examples=300, deadline=None)
@given(st.lists(texts, min_size=2, max_size=12), texts)
def test_the_longest_known_prefix_is_found_and_nothing_is_stored_twice(entered, sought):
    cache = Cache()
    for index, text in enumerate(entered):
        assert cache.enter(text) == (longest_common_prefix(text, entered[:index]) if index else 0)
    assert cache.found(sought) == longest_common_prefix(sought, entered)
    prefixes = {tuple(text[:end]) for text in entered for end in range(1, len(text) + 1)}
    assert sum(cache.runs()) == len(prefixes)
    cache.tree.check({})


@settings(max_examples=200, deadline=None)
@given(st.lists(texts, min_size=1, max_size=8), st.data())
def test_what_is_held_stays_and_all_else_goes_leaf_by_leaf(entered, data):
    cache = Cache()
    held = data.draw(st.sets(st.integers(0, len(entered) - 1)))
    for index, text in enumerate(entered):
        if index in held:
            cache.hold(text)
        else:
            cache.enter(text)
    stored = {block for node in cache.tree for block in node.blocks}
    kept = {tuple(entered[index][:end]) for index in held for end in range(1, len(entered[index]) + 1)}
    given_up = set()
    while len(stored) - len(given_up) > len(kept):
        freed = cache.tree.evict()
        assert freed
        assert set(freed) <= stored - given_up
        given_up |= set(freed)
    assert len(stored) - len(given_up) == len(kept)
    assert all(cache.found(entered[index]) == len(entered[index]) for index in held)
    with pytest.raises(IndexError):
        cache.tree.evict()


def test_a_run_is_split_where_texts_part():
    cache = Cache()
    cache.enter([1, 2, 3, 4])
    assert cache.runs() == [4]
    assert cache.found([1, 2, 3]) == 3
    assert cache.runs() == [4]  # looking changes nothing
    assert cache.enter([1, 2, 5]) == 2
    assert cache.runs() == [1, 2, 2]
    assert cache.enter([1, 2]) == 2
    assert cache.runs() == [1, 2, 2]


def test_whoever_holds_part_of_a_run_still_does_when_it_is_split():
    cache = Cache()
    node, _ = cache.hold([1, 2, 3, 4])
    assert cache.tree.find(keys_of([1, 2, 9]).__getitem__, 3) == (2, 2)
    cache.enter([1, 2, 9])
    assert cache.tree.blocks_to(node) == [0, 1, 2, 3]
    assert len(cache.tree.evict()) == 1
    assert cache.tree.release(node) == 4
    assert [len(cache.tree.evict()) for _ in range(2)] == [2, 2]


def test_the_second_to_enter_the_same_keeps_its_blocks():
    cache = Cache()
    tree, keys = cache.tree, keys_of([1, 2, 3, 4])
    cache.enter([1, 2])
    node, known = tree.insert(tree.root, keys, [50, 51, 52, 53])
    assert known == 2
    assert tree.blocks_to(node) == [0, 1, 52, 53]


def test_a_leaf_used_long_ago_goes_first_and_a_parent_after_its_children():
    cache = Cache()
    for text in ([1, 2, 3], [4, 5], [1, 2, 6]):
        cache.enter(text)
    # Splitting [1, 2, 3] was a use of its rest, so that [4, 5] is the one used longest ago.
    assert [list(cache.tree.evict()) for _ in range(4)] == [[3, 4], [2], [5], [0, 1]]


def test_what_a_request_entered_counts_from_then_if_it_is_released_later_without_a_use():
    cache = Cache()
    early, _ = cache.hold([1, 2])
    cache.enter([3])
    cache.enter([4])
    cache.tree.release(early)
    assert [list(cache.tree.evict()) for _ in range(3)] == [[0, 1], [2], [3]]


@pytest.mark.parametrize(
    ("eviction", "first"), [("lru", [1, 1]), ("lfu", [2, 2]), ("priority", [3, 3]), ("length-aware", [2, 2])]
)
def test_each_policy_gives_up_its_own(eviction, first):
    order = LeafOrder(policy_class("eviction", eviction)(), describe_runs(SPEC, 1, 100))
    cache = Cache(LeafOrder() if eviction == "lru" else order)
    for text, priority in [([1, 1], 0), ([1, 1], 0), ([2, 2], 0), ([3, 3], 9), ([3, 3], 9)]:
        cache.enter(text, priority)
    cache.tree.evict()
    assert [text for text in ([1, 1], [2, 2], [3, 3]) if not cache.found(text)] == [first]


def test_what_expired_is_not_found_but_can_be_entered_again():
    now_s = [0.0]
    cache = Cache(expiry=Expiry(10.0, lambda: now_s[0]))
    cache.enter([1, 2])
    now_s[0] = 9.9
    assert cache.found([1, 2]) == 2
    now_s[0] = 10.0
    assert cache.found([1, 2]) == 0
    tree, keys = cache.tree, keys_of([1, 2])
    node, known = tree.insert(tree.root, keys, [8, 9])
    tree.hold(node, tree.root)
    assert (known, cache.found([1, 2])) == (2, 2)


def test_the_order_does_not_grow_with_what_was_used():
    cache = Cache()
    for _ in range(10_000):
        cache.enter([1, 2])
    assert len(cache.tree._leaves._heap) < 100


def block_by_block(prompts, capacity):
    """Hits of a tree whose nodes are single blocks."""
    tree, blank, hits = RadixTree(LeafOrder()), capacity, []
    for prompt in prompts:
        keys = prompt.keys[:capacity]
        node, found = tree.match(keys.__getitem__, len(keys))
        hits.append(found)
        tree.hold(node, tree.root)
        for key in keys[found:]:
            if not blank:
                blank += len(tree.evict())
            blank -= 1
            above = node
            node, _ = tree.insert(above, [key], [0])
            tree.hold(node, above)
        tree.release(node)
    return sum(hits)


@settings(max_examples=200, deadline=None)
@given(st.lists(texts, min_size=1, max_size=30), st.integers(1, 40))
def test_with_single_blocks_for_nodes_a_tree_finds_what_a_queue_of_blocks_does(entered, capacity):
    """So whatever the two differ in comes from giving up whole leaves."""
    prompts = [CachedPrompt(keys_of(text), len(text)) for text in entered]
    assert block_by_block(prompts, capacity) == replay_cache(prompts, 1, capacity, LRU, SPEC).hit_tokens


@settings(max_examples=100, deadline=None)
@given(st.lists(texts, min_size=1, max_size=30))
def test_without_a_bound_both_find_the_same(entered):
    prompts = [CachedPrompt(keys_of(text), len(text)) for text in entered]
    pair = [replay(prompts, 1, None, LRU, SPEC).hit_tokens for replay in (replay_cache, replay_radix_cache)]
    assert pair[0] == pair[1]
