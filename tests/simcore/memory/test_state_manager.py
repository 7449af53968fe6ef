"""A prefix cache of a model with linear attention: blocks, and states at some places that sum up all before them."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servetwin.api import prepare
from simcore.core.content import Content, Run
from simcore.core.errors import InputError
from simcore.core.request import Request
from simcore.memory.block_manager import KVBlockManager
from simcore.memory.kept_states import KeptStates
from simcore.memory.state_manager import KVStateManager

BLOCK, EVERY = 4, 2


@dataclass
class Replica:
    """A manager, and requests that it serves chunk by chunk."""

    kept: int = 100
    manager: KVStateManager = field(init=False)

    def __post_init__(self):
        self.manager = KVStateManager(200, BLOCK, KeptStates(self.kept, EVERY))
        self.numbers = iter(range(10**6))

    def waiting(self, *runs):
        return Request(next(self.numbers), 0, sum(run.tokens for run in runs), content=Content(runs, 10**9))

    def serve(self, request, *chunks):
        """Compute a prompt in chunks and let the request leave; what it found in the cache."""
        found, _ = self.manager.cached_prefix(request)
        first, *others = chunks or (request.prompt_tokens - found,)
        self.manager.admit(request, found, first)
        request.computed_tokens = found + first
        self.manager.computed(request)
        for chunk in others:
            self.manager.grow(request, chunk)
            request.computed_tokens += chunk
            self.manager.computed(request)
        self.manager.release(request)
        return found


def prompt(first, tokens):
    return Run(first, tokens)


def test_a_prefix_is_found_as_far_as_a_state_was_kept():
    """22 tokens are 5 full blocks; the last place for a state among them is after 4, at 16 tokens."""
    replica = Replica()
    assert replica.serve(replica.waiting(prompt(0, 22))) == 0
    assert replica.serve(replica.waiting(prompt(0, 22))) == 16


def test_every_chunk_leaves_a_state():
    replica = Replica()
    replica.serve(replica.waiting(prompt(0, 30)), 13, 17)
    assert replica.serve(replica.waiting(prompt(0, 12), prompt(500, 8))) == 8


def test_a_state_is_kept_where_prefixes_part_once_that_is_known():
    replica = Replica()
    assert [replica.serve(replica.waiting(prompt(0, 18), prompt(1000 * n, 22))) for n in (1, 2, 3)] == [0, 0, 16]


def test_what_a_chunk_computes_is_not_found_before_it_is_computed():
    replica = Replica()
    first, second = replica.waiting(prompt(0, 22)), replica.waiting(prompt(0, 22))
    replica.manager.admit(first, 0, 22)
    assert replica.manager.cached_prefix(second) == (0, 0)
    first.computed_tokens = 22
    replica.manager.computed(first)
    assert replica.manager.cached_prefix(second)[0] == 16


def test_what_a_request_generated_is_found_up_to_the_last_state():
    replica = Replica()
    request = replica.waiting(prompt(0, 6))
    replica.manager.admit(request, 0, 6)
    request.computed_tokens = 6
    replica.manager.computed(request)
    replica.manager.extend(request, 3)
    request.computed_tokens = 17
    replica.manager.release(request)
    again = replica.waiting(prompt(0, 6), prompt(10**9, 12))
    assert replica.serve(again) == 16


def test_the_state_used_least_recently_is_given_up_first():
    replica = Replica(kept=2)
    for first in (0, 100, 0, 200):
        replica.serve(replica.waiting(prompt(first, 10)))
    found = [replica.manager.cached_prefix(replica.waiting(prompt(first, 10)))[0] for first in (0, 100, 200)]
    assert found == [8, 0, 8]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(1, 30)), min_size=1, max_size=25))
def test_nothing_is_found_that_blocks_do_not_cache_or_that_lies_between_places_for_states(texts):
    replica, blocks = Replica(kept=6), KVBlockManager(200, BLOCK, prefix_caching=True)
    for number, (common, tokens, own) in enumerate(texts):
        runs = [run for run in (prompt(1000 * common, tokens), prompt(10**6 + 100 * number, own)) if run.tokens]
        request = replica.waiting(*runs)
        cached, _ = blocks.cached_prefix(request)
        found = replica.serve(request)
        assert found <= cached
        assert found % (BLOCK * EVERY) == 0
        replica.manager.check([])
        other = Request(request.number, 0, request.prompt_tokens, content=request.content)
        blocks.admit(other, cached, other.prompt_tokens - cached)
        other.computed_tokens = other.prompt_tokens
        blocks.release(other)


def scenario(**memory):
    return {
        "model": "qwen3-next-80b-a3b",
        "cluster": {"accelerator": "h200-sxm", "tensor_parallel": 2},
        "memory": memory,
        "workload": {
            "requests": 12,
            "arrivals": {"name": "constant", "rate_per_s": 2},
            "prefix": [{"name": "shared", "tokens": {"name": "fixed", "tokens": 4000}}],
            "prompt_tokens": {"name": "fixed", "tokens": 100},
            "output_tokens": {"name": "fixed", "tokens": 5},
        },
    }


def test_a_scenario_says_how_far_prefixes_are_found():
    """From the third request on: 4,000 common tokens hold 15 times 256."""
    result = prepare(scenario()).run(check=True)
    cached = np.asarray(result.requests["cached_tokens"])
    assert cached.tolist() == [0, 0, *[15 * 256] * 10]
    (told,) = [notice for notice in result.summary["notices"] if "kept states" in notice]
    assert told.startswith("Prefixes of qwen3-next-80b-a3b are found as far as one of 256 kept states reaches")
    wide = prepare(scenario(prefix_cache={"state_interval_tokens": 544})).run()
    assert np.asarray(wide.requests["cached_tokens"]).tolist() == [0, *[7 * 544] * 11]


def test_the_tree_of_sglang_keeps_states_too():
    turns = scenario() | {"engine": "sglang", "scheduler": {"batching": {"max_running_requests": 400}}}
    result = prepare(turns).run(check=True)
    assert np.asarray(result.requests["cached_tokens"]).tolist() == [0, 0, *[15 * 256] * 10]
    assert any("one of 256 kept states" in notice for notice in result.summary["notices"])


def test_states_that_are_kept_take_memory():
    few, many = (prepare(scenario(prefix_cache={"kept_states": kept})).pools[0].memory for kept in (44, 300))
    of_a_state = few.decisive.state_bytes // (256 + 44)
    assert many.decisive.state_bytes == of_a_state * (256 + 300)
    assert few.blocks > many.blocks


def test_a_preempted_request_goes_on_from_its_last_state():
    busy = scenario(num_gpu_blocks=700)
    busy["workload"] |= {
        "arrivals": {"name": "constant", "rate_per_s": 1e6},
        "output_tokens": {"name": "fixed", "tokens": 900},
    }
    result = prepare(busy).run(check=True)
    assert result.summary["preemptions"]["total"] > 0
    assert result.summary["counts"]["finished"] == 12


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ({"prefix_cache": {"index": "radix"}}, "prefix_caching is true, expected false with .* kept in a tree only"),
        ({"prefix_cache": {"state_interval_tokens": 40}}, "is 40, expected a multiple of memory.block_size_tokens, 16"),
        ({"prefix_cache": {"warm_up_requests": 2}}, "warm_up_requests is 2, expected 0, since states of qwen3-next"),
    ],
)
def test_what_states_do_not_allow_is_refused(memory, said):
    with pytest.raises(InputError, match=said):
        prepare(scenario(**memory))


def test_models_without_states_keep_none():
    plain = scenario(prefix_cache={"kept_states": 3}) | {"model": "llama-3.1-8b"}
    with pytest.raises(InputError, match=r"kept_states is 3, expected none, since llama-3\.1-8b has none"):
        prepare(plain)
