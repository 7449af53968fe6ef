"""What whole leaves cost on real traffic, against giving up single blocks."""

import pytest

from experiments.cache_replay import prompts_of, replay_cache, replay_radix_cache
from policies.registry import policy_class
from simcore.models import load_model
from simcore.workload.traces import read_trace


@pytest.mark.parametrize("trace", ["conversation", "synthetic"])
def test_on_the_mooncake_traces_a_tree_finds_less_than_a_hundredth_less(trace, shared_data):
    """By least recent use: a leaf goes as a whole where of single blocks only its tail would have gone."""
    recorded = read_trace(shared_data / "traces" / "mooncake" / f"{trace}_trace.jsonl")
    prompts, block_tokens = prompts_of(recorded.contents, recorded.block_tokens), recorded.block_tokens
    eviction, spec = policy_class("eviction", "lru")(), load_model("llama-3.1-8b")

    def hit_tokens(capacity_tokens):
        blocks = None if capacity_tokens is None else capacity_tokens // block_tokens
        return [
            replay(prompts, block_tokens, blocks, eviction, spec).hit_tokens
            for replay in (replay_cache, replay_radix_cache)
        ]

    most, as_many = hit_tokens(None)
    assert most == as_many
    for capacity_tokens in (3_000_000, 50_000_000):
        by_hash, by_tree = hit_tokens(capacity_tokens)
        assert by_hash - 0.01 * most < by_tree <= by_hash
