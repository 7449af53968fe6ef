"""Replays of prompts through a prefix cache: by brute force, and against published hit rates."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.cache_replay import CachedPrompt, prompts_of, replay_cache
from policies.registry import policy_class, policy_names
from simcore.models import load_model
from simcore.workload.traces import read_trace

SPEC = load_model("smollm2-135m")
BLOCK_TOKENS = 4


def hits(prompts, capacity_blocks, name):
    eviction = None if name == "clairvoyant" else policy_class("eviction", name)()
    return replay_cache(prompts, BLOCK_TOKENS, capacity_blocks, eviction, SPEC).hit_tokens


# Prompts as paths through a small tree: the key of a block tells its whole prefix.
paths = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=3), min_size=1, max_size=9)


def prompts_from(choices):
    return [
        CachedPrompt([hash(tuple(path[: end + 1])) for end in range(len(path))], BLOCK_TOKENS * len(path))
        for path in choices
    ]


def most_hits(prompts, capacity):
    """The most tokens that any choice of blocks to give up could find, by trying all; a prompt holds all its own."""
    states = {frozenset(): 0}
    for prompt in prompts:
        following = {}
        for kept, found in states.items():
            now = 0
            while now < len(prompt.keys) and prompt.keys[now] in kept:
                now += 1
            others = sorted(kept - set(prompt.keys))
            for subset in combinations(others, min(capacity - len(prompt.keys), len(others))):
                state = frozenset(prompt.keys).union(subset)
                following[state] = max(following.get(state, -1), found + now)
        states = following
    return BLOCK_TOKENS * max(states.values())


@settings(max_examples=60, deadline=None)
@given(paths, st.integers(3, 5))
def test_clairvoyant_is_the_most_that_is_possible(choices, capacity):
    prompts = prompts_from(choices)
    assert hits(prompts, capacity, "clairvoyant") == most_hits(prompts, capacity)


@settings(max_examples=60, deadline=None)
@given(paths, st.integers(3, 6), st.sampled_from(policy_names("eviction")))
def test_no_policy_beats_clairvoyant_and_all_agree_without_a_bound(choices, capacity, name):
    prompts = prompts_from(choices)
    assert hits(prompts, capacity, name) <= hits(prompts, capacity, "clairvoyant")
    assert hits(prompts, None, name) == hits(prompts, None, "clairvoyant")


def test_a_prompt_larger_than_the_cache_leaves_its_head():
    long, short = CachedPrompt(list(range(10)), 40), CachedPrompt(list(range(6)), 24)
    assert replay_cache([long, short], BLOCK_TOKENS, 4, None, SPEC).hit_tokens == 16


def test_a_partly_filled_block_counts_by_its_tokens():
    prompt = CachedPrompt([1, 2], 6)
    assert replay_cache([prompt, prompt], BLOCK_TOKENS, None, None, SPEC).hit_tokens == 6


@pytest.mark.parametrize(
    ("file", "hit_rate", "shares"),
    [("conversation_trace.jsonl", 0.374, (0.371, 0.992)), ("synthetic_trace.jsonl", 0.651, (0.484, 1.0))],
)
def test_mooncake(file, hit_rate, shares, shared_data):
    trace = read_trace(shared_data / "traces" / "mooncake" / file)
    prompts = prompts_of(trace.contents, trace.block_tokens)
    lru = policy_class("eviction", "lru")
    unbounded = replay_cache(prompts, 512, None, lru(), SPEC)
    assert unbounded.hit_rate == pytest.approx(hit_rate, abs=0.001)
    for capacity_tokens, share in zip((3_000_000, 50_000_000), shares, strict=True):
        bounded = replay_cache(prompts, 512, capacity_tokens // 512, lru(), SPEC)
        assert bounded.hit_tokens / unbounded.hit_tokens == pytest.approx(share, abs=0.005)
