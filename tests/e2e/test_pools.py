"""Whole runs of clusters with pools."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from simcore.build.simulation import Simulation
from simcore.core.errors import InputError, UnknownNameError
from simcore.service.replica_limits import TOO_LARGE
from tests.e2e.scenarios import differences, merged, run

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "clusters.md"
ALIKE = {"accelerator": "l4", "replicas": 3, "routing": "least-requests"}
SPLIT = {
    "routing": "least-requests",
    "pools": [
        {"name": "one", "accelerator": "l4"},
        {"name": "two", "accelerator": "l4", "replicas": 2},
    ],
}


SCENARIO = {
    "model": "smollm2-135m",
    "workload": {
        "requests": 120,
        "arrivals": {"name": "poisson", "rate_per_s": 60.0},
        "prompt_tokens": {"name": "uniform", "low": 1, "high": 400},
        "output_tokens": {"name": "uniform", "low": 1, "high": 60},
    },
}


def with_cluster(cluster, **more):
    return merged(SCENARIO, more) | {"cluster": cluster}


def test_like_pools_are_one_cluster(tmp_path):
    split, alike = (run(with_cluster(cluster), tmp_path) for cluster in (SPLIT, ALIKE))
    for table in ("requests", "steps"):
        for name, column in getattr(alike, table).items():
            np.testing.assert_array_equal(getattr(split, table)[name], column)
    for place in ("metrics", "throughput", "kv", "cost"):
        assert split.summary[place] == alike.summary[place]
    assert split.summary["utilisation"] == pytest.approx(alike.summary["utilisation"])  # sums in another order
    assert "pools" not in alike.summary


def test_pools_add_up(tmp_path):
    pools = [
        {"name": "fast", "accelerator": "h100-sxm", "replicas": 2, "price_usd_per_h": 3.0},
        {"name": "slow", "accelerator": "l4", "engine": "sglang", "price_usd_per_h": 1.0},
    ]
    result = run(with_cluster({"pools": pools, "routing": "least-requests"}), tmp_path)
    fast, slow = (result.summary["pools"][name] for name in ("fast", "slow"))
    assert fast["requests"] + slow["requests"] == len(result.requests["request_id"])
    assert (fast["requests"], slow["requests"]) == (
        int((result.requests["replica"] < 2).sum()),
        int((result.requests["replica"] == 2).sum()),
    )
    for figure in ("steps", "prefill_tokens", "decode_tokens"):
        assert fast["utilisation"][figure] + slow["utilisation"][figure] == result.summary["utilisation"][figure]
    busy = result.summary["utilisation"]["busy_share"]
    assert busy == pytest.approx((2 * fast["utilisation"]["busy_share"] + slow["utilisation"]["busy_share"]) / 3)
    assert (fast["usd_per_h"], slow["usd_per_h"], result.summary["cost"]["usd_per_h"]) == (6.0, 1.0, 7.0)
    assert fast["tpot_s"]["mean"] < slow["tpot_s"]["mean"]
    ttft_s = result.requests["ttft_s"][result.requests["replica"] < 2]
    assert fast["ttft_s"]["mean"] == pytest.approx(np.nanmean(ttft_s))


def test_jumps_change_nothing(tmp_path):
    pools = [{"name": "fast", "accelerator": "h100-sxm"}, {"name": "slow", "accelerator": "l4", "engine": "sglang"}]
    scenario = with_cluster({"pools": pools, "routing": "least-tokens"})
    assert not differences(run(scenario, tmp_path), run(scenario, tmp_path, fast_forward=False))


def test_a_request_goes_where_it_fits(tmp_path):
    pools = [
        {"name": "small", "accelerator": "l4", "memory": {"num_gpu_blocks": 5}},
        {"name": "large", "accelerator": "l4", "memory": {"num_gpu_blocks": 12}},
    ]
    lengths = SCENARIO["workload"] | {
        "prompt_tokens": {"name": "uniform", "low": 16, "high": 300},
        "output_tokens": {"name": "fixed", "tokens": 1},
    }
    result = run(with_cluster({"pools": pools}, memory={"block_size_tokens": 16}, workload=lengths), tmp_path)
    prompts, replica = result.requests["prompt_tokens"], result.requests["replica"]
    room = Simulation.prepare(result.scenario, tmp_path)
    small, large = (16 * pool.memory.request_blocks for pool in room.pools)
    rejected = result.requests["state"] == "rejected"
    assert rejected.any()
    assert (rejected == (prompts > large)).all()
    assert set(result.requests["reason"][rejected]) == {TOO_LARGE}
    assert (replica[(prompts > small) & ~rejected] == 1).all()
    assert set(replica[prompts <= small]) == {0, 1}


def test_what_is_wrong_with_the_devices_of_a_pool_is_told_there(tmp_path):
    pools = [{"name": "a", "accelerator": "l4"}, {"name": "b", "accelerator": "l4", "tensor_parallel": 2}]
    with pytest.raises(InputError, match=r"^cluster\.pools\.1\.tensor_parallel is 2"):
        Simulation.prepare(with_cluster({"pools": pools}), tmp_path)


def test_one_pool_can_be_looked_at_alone(tmp_path):
    simulation = Simulation.prepare(with_cluster(SPLIT), tmp_path)
    assert [pool.name for pool in simulation.of_pool("two").pools] == ["two"]
    assert simulation.of_pool("two").scenario.cluster.replicas == 2
    with pytest.raises(UnknownNameError, match="--pool is 'too', expected one of one, two"):
        simulation.of_pool("too")


def test_the_scenario_of_the_guide_runs(tmp_path):
    example = next(
        block for block in re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL) if "model:" in block
    )
    result = Simulation.prepare(yaml.safe_load(example), tmp_path).run()
    assert result.summary["counts"]["finished"] == 500
    assert set(result.summary["pools"]) == {"new", "old"}
