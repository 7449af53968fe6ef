"""Prompts that are cached from the start, and pinned ones."""

import numpy as np
import pytest

import servetwin
from servetwin.api import prepare
from simcore.core.content import Content, Run
from simcore.core.errors import InputError
from simcore.core.request import Request
from simcore.memory import KVBlockManager
from tests.e2e.scenarios import differences


def request_of(number, *runs):
    prompt = [Run(*run) for run in runs]
    return Request(number, 0, sum(run.tokens for run in prompt), content=Content(prompt, 10**6 * (number + 2)))


def served(memory, request):
    cached, _ = memory.cached_prefix(request)
    memory.admit(request, cached, request.prompt_tokens - cached)
    request.computed_tokens = request.prompt_tokens
    memory.release(request)
    memory.check([])
    return cached


def test_what_is_loaded_is_found_and_what_is_pinned_stays():
    memory = KVBlockManager(20, 4, prefix_caching=True)
    memory.load(request_of(-1, (0, 30)), pinned_tokens=13)
    memory.check([])
    assert (memory.free_blocks, memory.pinned_blocks) == (17, 3)
    # Of three pinned blocks a request counts on those of its own prompt, less the one with its last token.
    prompts = [((0, 40),), ((0, 13),), ((0, 12),), ((0, 9), (900, 50)), ((900, 50),)]
    assert [memory.total_for(request_of(0, *prompt)) for prompt in prompts] == [20, 20, 19, 19, 17]
    assert memory.unpinned_for(request_of(0, (0, 40))) == 17
    assert memory.cached_prefix(request_of(1, (0, 40))) == (28, 3)
    served(memory, request_of(2, (500, 68)))  # takes all that is not pinned
    assert memory.cached_prefix(request_of(3, (0, 40))) == (12, 3)
    assert served(memory, request_of(4, (0, 40))) == 12


def test_pinning_the_same_twice_takes_nothing_more():
    memory = KVBlockManager(20, 4, prefix_caching=True)
    for number in (-1, -2):
        memory.load(request_of(number, (0, 16), (1000 * -number, 8)), pinned_tokens=16)
    assert memory.pinned_blocks == 4
    memory.check([])


def scenario(**memory):
    return {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "h100-sxm"},
        "workload": {
            "requests": 200,
            "arrivals": {"name": "poisson", "rate_per_s": 4},
            "prefix": [{"name": "shared", "tokens": {"name": "fixed", "tokens": 1600}}],
            "prompt_tokens": {"name": "fixed", "tokens": 400},
            "output_tokens": {"name": "fixed", "tokens": 50},
        },
        "memory": {"num_gpu_blocks": 800, **memory},
    }


def test_a_pinned_system_prompt_is_found_by_the_first_request_on():
    cold = servetwin.simulate(scenario())
    warm = servetwin.simulate(scenario(prefix_cache={"warm_up_requests": 1, "pinned_tokens": 1600}))
    assert cold.requests["cached_tokens"][0] == 0
    assert (warm.requests["cached_tokens"] >= 1600).all()
    assert warm.summary["metrics"]["ttft_s"]["max"] < cold.summary["metrics"]["ttft_s"]["max"]


@pytest.mark.parametrize("capacity_gb", [0.5, 50.0])
def test_pins_and_tiers_go_together(capacity_gb):
    """What is pinned is found by everybody, however little the tier has, and the tier serves others meanwhile."""
    document = scenario(
        num_gpu_blocks=300,
        prefix_cache={"warm_up_requests": 1, "pinned_tokens": 800},
        tiers=[{"name": "cpu", "capacity_gb": capacity_gb}],
    )
    document["workload"]["prefix"][0]["among"] = 5
    simulation = prepare(document)
    jumping, stepping = simulation.run(check=True), simulation.run(fast_forward=False)
    assert differences(jumping, stepping) == []
    assert jumping.summary["counts"]["finished"] == 200
    assert jumping.summary["kv"]["tiers"]["cpu"]["hit_rate"] > 0
    begins = [content.prompt[0].first for batch in simulation.workload.batches() for content in batch.contents]
    of_pinned = np.array(begins) == begins[0]
    cached = jumping.requests["cached_tokens"]
    assert 20 < of_pinned.sum() < 180
    assert (cached[of_pinned] >= 800).all()
    assert cached[~of_pinned].min() == 0


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ({"prefix_cache": {"pinned_tokens": 5}}, "pinned_tokens is 5, expected 0, or memory.prefix_cache.warm_up"),
        ({"prefix_cache": {"warm_up_requests": 1}, "prefix_caching": False}, "since memory.prefix_caching is off"),
        ({"prefix_cache": {"warm_up_requests": 1, "index": "radix"}}, "index is not hash"),
    ],
)
def test_what_cannot_be_cached_in_advance_is_refused(memory, said):
    with pytest.raises(InputError, match=said):
        prepare(scenario(**memory))


def test_a_workload_that_says_nothing_cannot_warm_a_cache():
    document = scenario(prefix_cache={"warm_up_requests": 1})
    del document["workload"]["prefix"]
    with pytest.raises(InputError, match="since nothing is known of what its requests contain"):
        prepare(document)


def test_no_more_can_be_warmed_up_than_there_is():
    document = scenario(prefix_cache={"warm_up_requests": 10_000})
    requests = document["workload"]["requests"]
    with pytest.raises(InputError, match=rf"warm_up_requests is 10000, expected at most {requests}, as many as"):
        servetwin.simulate(document)
