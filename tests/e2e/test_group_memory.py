"""Models with sliding windows where blocks of layer groups are kept one by one."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import simcore.build.replica
from simcore.core.content import Content, Run
from simcore.memory import KVGroupManager
from simcore.memory.block_pool import Expiry
from tests.e2e.scenarios import differences, merged, prepare, random_scenarios, run, synthetic, write_models


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("group-memory")
    write_models(folder)
    return folder


class Sharing(KVGroupManager):
    """Memory in which every third request begins with the same document."""

    def cached_prefix(self, request):
        request.content = request.content or Content(
            [Run(10**6 * (request.number % 3), request.prompt_tokens)], 10**9 * (1 + request.number)
        )
        return super().cached_prefix(request)


def run_with_groups(kind, scenario, folder, prefix_caching, after_s=None, **options):
    def build(scenario, spec, plan, shares_content, timer, numbered):
        return kind(
            plan.request_blocks,
            scenario.memory.block_size_tokens,
            plan.layout,
            plan.demand.max_batched_tokens,
            prefix_caching,
            expiry=None if after_s is None else Expiry(after_s, lambda: timer.now_ns / 1e9),
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simcore.build.replica, "build_memory", build)
        return run(scenario, folder, **options)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(scenario=random_scenarios(), mode=st.sampled_from(["recompute", "swap"]))
def test_single_blocks_equal_counts(scenario, folder, mode):
    """With nothing shared nor found again, the run is the one that only counts blocks, to the bit."""
    scenario = merged(scenario, {"scheduler": {"preemption": {"mode": mode}}, "memory": {"swap_space_gb": 1.0}})
    assume(prepare(scenario, folder).memory.layout.releases)
    kept = run_with_groups(KVGroupManager, scenario, folder, prefix_caching=False, check=True)
    assert differences(run(scenario, folder), kept) == []


@settings(max_examples=80, deadline=None, derandomize=True)
@given(scenario=random_scenarios(), after_steps=st.sampled_from([None, 3.0]))
def test_jumping_equals_stepping(scenario, folder, after_steps):
    assume(prepare(scenario, folder).memory.layout.releases)
    after_s = None if after_steps is None else after_steps * 0.005
    jumping, stepping = (
        run_with_groups(Sharing, scenario, folder, True, after_s, fast_forward=jumps, check=True)
        for jumps in (True, False)
    )
    assert differences(jumping, stepping) == []


@pytest.mark.parametrize(
    ("model", "cache"),
    [
        ("gpt-oss-20b", {"tenant_shares": {"gold": 0.6}}),
        ("gpt-oss-20b", {"eviction": {"name": "cost-aware"}, "expires_after_s": 2.0}),
        ("gemma-3-27b", {"warm_up_requests": 3, "pinned_tokens": 200}),
        ("mistral-7b", {"share_between_tenants": True}),
    ],
)
@pytest.mark.parametrize("mode", ["recompute", "swap"])
def test_what_models_with_windows_share(model, cache, mode, folder):
    """Short of memory, with every setting of the cache: books are recounted after every step, and all are served."""
    shared = {"name": "shared", "tokens": {"name": "fixed", "tokens": 1500}}
    tenants = [{"name": name, "share": 0.5} for name in ("gold", "other")]
    workload = synthetic({"name": "poisson", "rate_per_s": 20.0}, (10, 400), (10, 120), requests=40)
    scenario = {
        "model": model,
        "cluster": {"accelerator": "h100-sxm"},
        "scheduler": {"preemption": {"mode": mode}},
        "memory": {"prefix_caching": True, "prefix_cache": cache, "num_gpu_blocks": 1100, "swap_space_gb": 1.0},
        "workload": workload | {"prefix": [shared], "tenants": tenants},
    }
    result = run(scenario, folder, check=True)
    assert result.summary["counts"]["finished"] == 40
    assert not [notice for notice in result.summary["notices"] if "not released" in notice]
    assert 0.3 < result.summary["kv"]["prefix_hit_rate"] < 1
    assert differences(result, run(scenario, folder, fast_forward=False)) == []


@pytest.mark.parametrize("batching", ["static", "dynamic", "bucketed", "prefill-first", "decode-prefill-alternate"])
def test_a_whole_prompt_needs_memory_for_all_of_it(batching, folder):
    """A prompt beyond the token budget has a step for itself, after which most of its windowed blocks are free."""
    scenario = {
        "model": "gpt-oss-20b",
        "cluster": {"accelerator": "h100-sxm"},
        "memory": {"num_gpu_blocks": 300},
        "scheduler": {"batching": {"name": batching, "max_batched_tokens": 256}},
        "workload": synthetic({"name": "poisson", "rate_per_s": 50.0}, (1000, 2500), (20, 50), requests=40),
    }
    counts = run(scenario, folder, check=True).summary["counts"]
    assert 0 < counts["rejected"] < 10  # those that 299 blocks do not hold in two groups at once
    assert counts["finished"] == 40 - counts["rejected"]
