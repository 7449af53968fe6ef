"""A run in which every block is kept one by one equals the run that only counts them."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import simcore.build.replica
from policies.registry import policy_class
from simcore.build.memory import describe_blocks
from simcore.core.content import Content, Run
from simcore.memory import KVBlockManager
from simcore.memory.block_pool import Expiry
from simcore.memory.free_order import RankedOrder
from tests.e2e.scenarios import (
    differences,
    hard_examples,
    merged,
    prepare,
    random_scenarios,
    run,
    synthetic,
    write_models,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("block-memory")
    write_models(folder)
    return folder


def run_with_blocks(scenario, folder, **options):
    """The run with a block manager, which simulates the same but takes longer."""

    def build(scenario, spec, plan, shares_content, timer, numbered):
        return KVBlockManager(plan.request_blocks, scenario.memory.block_size_tokens, scenario.memory.prefix_caching)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simcore.build.replica, "build_memory", build)
        return run(scenario, folder, **options)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(scenario=random_scenarios())
@hard_examples
def test_random_scenarios(scenario, folder):
    assume(not prepare(scenario, folder).memory.layout.releases)
    assert differences(run(scenario, folder), run_with_blocks(scenario, folder, check=True)) == []


class Sharing(KVBlockManager):
    """Memory in which every third request begins with the same document."""

    def cached_prefix(self, request):
        request.content = request.content or Content(
            [Run(10**6 * (request.number % 3), request.prompt_tokens)], 10**9 * (1 + request.number)
        )
        return super().cached_prefix(request)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    scenario=random_scenarios(),
    after_s=st.sampled_from([0.004, 0.001, 0.02, None]),
    whole=st.booleans(),
    eviction=st.sampled_from(["lru", "lfu"]),
)
def test_jumping_equals_stepping_whatever_expires(scenario, after_s, whole, eviction, folder):
    def build(scenario, spec, plan, shares_content, timer, numbered):
        block_size = scenario.memory.block_size_tokens
        expiry = None if after_s is None else Expiry(after_s, lambda: timer.now_ns / 1e9)
        order = None
        if eviction != "lru":
            order = RankedOrder(policy_class("eviction", eviction)(), describe_blocks(spec, block_size, 100))
        return Sharing(plan.request_blocks, block_size, True, order=order, expiry=expiry)

    scenario = merged(scenario, {"scheduler": {"reserve_whole_prompt": whole}, "memory": {"prefix_caching": True}})
    assume(not prepare(scenario, folder).memory.layout.releases)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simcore.build.replica, "build_memory", build)
        jumping, stepping = (run(scenario, folder, fast_forward=jumps, check=True) for jumps in (True, False))
    assert differences(jumping, stepping) == []


SHORT_OF_MEMORY = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm"},
    "workload": synthetic({"name": "poisson", "rate_per_s": 30.0}, (100, 1900), (10, 390), requests=400),
    "memory": {"num_gpu_blocks": 1500, "prefix_caching": True},
}


def test_a_preempted_request_finds_part_of_what_it_had(folder):
    """Recomputation is cheaper with a prefix cache, though nothing is shared, and never counts as a hit."""
    cached, plain = (
        run(merged(SHORT_OF_MEMORY, {"memory": {"prefix_caching": caching}}), folder) for caching in (True, False)
    )
    assert differences(cached, run_with_blocks(SHORT_OF_MEMORY, folder)) == []
    assert cached.summary["preemptions"]["total"] > 50
    assert cached.summary["kv"]["prefix_hit_rate"] == 0.0
    assert plain.summary["kv"]["prefix_hit_rate"] is None
    prefilled = [result.steps["prefill_tokens"].sum() for result in (cached, plain)]
    assert prefilled[0] < prefilled[1]
    assert np.array_equal(cached.requests["prompt_tokens"], plain.requests["prompt_tokens"])


def test_divided_memory_serves_everybody(folder):
    """Divided memory plans request by request; its books are recounted after every step, and all are served."""
    tenants = [{"name": name, "share": 0.5} for name in ("gold", "other")]
    workload = SHORT_OF_MEMORY["workload"] | {"tenants": tenants, "requests": 120}
    shares = {"prefix_cache": {"tenant_shares": {"gold": 0.7}}}
    result = run(merged(SHORT_OF_MEMORY, {"workload": workload, "memory": shares}), folder, check=True)
    assert result.summary["counts"]["finished"] == 120
    assert result.summary["preemptions"]["total"] > 0
    assert 0 < result.summary["kv"]["peak_used_blocks"] <= result.summary["kv"]["blocks_per_replica"]
