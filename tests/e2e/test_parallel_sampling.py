"""Runs whose requests ask for several outputs."""

import numpy as np
import pytest

import servetwin
from simcore.core.errors import InputError
from tests.e2e.scenarios import differences, merged, run, synthetic

SAMPLED = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm"},
    "memory": {"prefix_caching": True},
    "workload": synthetic({"name": "poisson", "rate_per_s": 4.0}, (500, 1500), (20, 200), requests=60) | {"samples": 4},
}


def prefilled(result):
    return int(result.steps["prefill_tokens"].sum())


def test_a_prompt_is_computed_once_but_for_its_last_block(tmp_path):
    sampled = run(SAMPLED, tmp_path, check=True)
    prompt_tokens = int(sampled.requests["prompt_tokens"].sum())
    assert sampled.summary["counts"]["finished"] == sampled.summary["counts"]["arrived"] == 60
    # Three more samples each compute what follows the last full block, of 16 tokens at most.
    assert prompt_tokens < prefilled(sampled) <= prompt_tokens + 60 * 3 * 16
    # Samples find each other's blocks, which is no hit of the request.
    assert sampled.summary["kv"]["prefix_hit_rate"] == 0.0
    without = run(merged(SAMPLED, {"memory": {"prefix_caching": False}}), tmp_path)
    assert prefilled(without) == 4 * prompt_tokens
    assert without.summary["metrics"]["ttft_s"]["mean"] > sampled.summary["metrics"]["ttft_s"]["mean"]


def test_requests_take_their_samples_together(tmp_path):
    sampled, alone = (
        run(merged(SAMPLED, {"workload": SAMPLED["workload"] | {"samples": count}}), tmp_path) for count in (4, 1)
    )
    assert np.array_equal(sampled.requests["arrival_s"], alone.requests["arrival_s"])
    assert (sampled.requests["output_tokens"] > alone.requests["output_tokens"]).all()
    assert sampled.requests["output_tokens"].sum() > 3 * alone.requests["output_tokens"].sum()
    assert (sampled.requests["e2e_s"] > sampled.requests["ttft_s"]).all()


@pytest.mark.parametrize("changes", [{}, {"num_gpu_blocks": 800}])
def test_jumping_equals_stepping(changes, tmp_path):
    scenario = merged(SAMPLED, {"memory": changes, "cluster": {"replicas": 2}})
    assert differences(run(scenario, tmp_path, check=True), run(scenario, tmp_path, fast_forward=False)) == []


def test_all_samples_go_to_one_replica(tmp_path):
    """Round robin would deal the two samples of each request out, and none would find the other's prompt."""
    scenario = merged(SAMPLED, {"cluster": {"replicas": 2, "routing": "round-robin"}})
    scenario["workload"] = scenario["workload"] | {"samples": 2}
    sampled = run(scenario, tmp_path)
    assert prefilled(sampled) <= sampled.requests["prompt_tokens"].sum() + 60 * 16
    assert sampled.requests["replica"].tolist() == [0, 1] * 30


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ({"prefix_cache": {"index": "radix"}}, "workload.samples is 4, expected 1, since memory.prefix_cache.index is"),
        ({"tiers": [{"name": "cpu", "capacity_gb": 10}]}, "workload.samples is 4, expected 1, since hits in memory"),
    ],
)
def test_what_would_be_wrong_is_refused(memory, said):
    with pytest.raises(InputError, match=said):
        servetwin.simulate(merged(SAMPLED, {"memory": memory}))
