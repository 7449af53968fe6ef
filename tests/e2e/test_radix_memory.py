"""Whole runs with a radix tree for a prefix cache."""

import numpy as np
import pytest
from hypothesis import given, settings

import simcore.build.replica
from simcore.core.content import Content, Run
from simcore.memory import KVBlockManager, KVRadixManager
from tests.e2e.scenarios import differences, hard_examples, merged, random_scenarios, run, synthetic, write_models

RADIX = {"memory": {"prefix_caching": True, "prefix_cache": {"index": "radix"}}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("radix-memory")
    write_models(folder)
    return folder


def sharing(kind):
    """Memory in which every third request begins with the same document."""

    class Sharing(kind):
        def cached_prefix(self, request):
            request.content = request.content or Content(
                [Run(10**6 * (request.number % 3), request.prompt_tokens)], 10**9 * (1 + request.number)
            )
            return super().cached_prefix(request)

    return Sharing


def run_sharing(kind, scenario, folder, **options):
    """The run of a scenario whose requests share what they say."""

    def build(scenario, spec, plan, shares_content, timer, numbered):
        block_size = scenario.memory.block_size_tokens
        caching = {"prefix_caching": True} if kind is KVBlockManager else {}
        return sharing(kind)(plan.request_blocks, block_size, **caching)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simcore.build.replica, "build_memory", build)
        return run(scenario, folder, **options)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(scenario=random_scenarios())
@hard_examples
def test_jumping_equals_stepping(scenario, folder):
    scenario = merged(scenario, RADIX)
    jumping, stepping = (
        run_sharing(KVRadixManager, scenario, folder, fast_forward=jumps, check=True) for jumps in (True, False)
    )
    assert differences(jumping, stepping) == []


CHAT = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm"},
    "workload": synthetic({"name": "poisson", "rate_per_s": 30.0}, (100, 1900), (10, 390), requests=400),
    "memory": {"num_gpu_blocks": 1500, "prefix_caching": True},
}


def test_with_room_for_all_both_indexes_find_about_the_same(folder):
    """Requests of one step find each other's blocks by hash, and not in a tree."""
    scenario = merged(CHAT, {"memory": {"num_gpu_blocks": 30_000}})
    rates = [
        run_sharing(kind, scenario, folder).summary["kv"]["prefix_hit_rate"]
        for kind in (KVBlockManager, KVRadixManager)
    ]
    assert 0.9 < rates[1] <= rates[0]


def test_jumping_equals_stepping_where_documents_are_pushed_out_while_requests_decode(folder):
    documents = {"name": "shared", "tokens": {"name": "uniform", "low": 300, "high": 1500}, "among": 60}
    arrivals = {"name": "poisson", "rate_per_s": 5.0}
    workload = synthetic(arrivals, (50, 200), (10, 900), requests=200, prefix=[documents])
    scenario = merged(
        CHAT, {"workload": workload, "memory": {"num_gpu_blocks": 2000, "prefix_cache": {"index": "radix"}}}
    )
    jumping, stepping = (run(scenario, folder, fast_forward=jumps) for jumps in (True, False))
    assert differences(jumping, stepping) == []
    assert 0.1 < jumping.summary["kv"]["prefix_hit_rate"] < 0.9


@pytest.mark.parametrize("eviction", ["lru", "cost-aware"])
def test_a_preempted_request_finds_its_prompt_and_not_what_it_generated(eviction, folder):
    cache = {"memory": {"prefix_cache": {"index": "radix", "eviction": eviction}}}
    scenario = merged(CHAT, cache)
    result = run(scenario, folder, check=True)
    assert differences(result, run(scenario, folder, fast_forward=False)) == []
    assert result.summary["preemptions"]["total"] > 50
    assert result.summary["kv"]["prefix_hit_rate"] == 0.0
    by_hash, without = (run(merged(CHAT, {"memory": {"prefix_caching": on}}), folder) for on in (True, False))
    prefilled = [each.steps["prefill_tokens"].sum() for each in (by_hash, result, without)]
    assert prefilled == sorted(prefilled)
    assert len(set(map(int, prefilled))) == 3
    assert np.array_equal(result.requests["prompt_tokens"], by_hash.requests["prompt_tokens"])


def test_tenants_may_have_trees_of_their_own(folder):
    tenants = [{"name": name, "share": 0.5} for name in ("gold", "other")]
    workload = CHAT["workload"] | {"tenants": tenants, "requests": 120}
    cache = {"index": "radix", "tenant_shares": {"gold": 0.7}, "expires_after_s": 2.0}
    result = run(merged(CHAT, {"workload": workload, "memory": {"prefix_cache": cache}}), folder, check=True)
    assert result.summary["counts"]["finished"] == 120
    assert result.summary["preemptions"]["total"] > 0
