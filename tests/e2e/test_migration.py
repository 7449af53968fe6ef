"""Whole runs in which running requests move: nobody is lost, nothing leaks, no token comes twice."""

from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import registry
from policies.migration import Migration, Move
from simcore.build.simulation import Simulation
from simcore.core.errors import InputError
from tests.e2e.outcomes import with_one_outcome_each
from tests.e2e.scenarios import merged, run

MOVING = {"policy": "virtual-usage", "interval_s": 0.02}
SCENARIO = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "l4", "replicas": 3, "network_gb_per_s": 1.0, "migration": MOVING},
    "memory": {"num_gpu_blocks": 120, "block_size_tokens": 16},
    "workload": {
        "requests": 150,
        "arrivals": {"name": "poisson", "rate_per_s": 60.0},
        "prompt_tokens": {"name": "uniform", "low": 1, "high": 400},
        "output_tokens": {"name": "uniform", "low": 1, "high": 400},
    },
}
KV_BYTES = 2 * 30 * 3 * 64 * 2
"""Of a token of SmolLM2-135M: keys and values of 30 layers, 3 heads of 64 numbers of 2 bytes."""


@st.composite
def scenarios(draw):
    block_size = draw(st.sampled_from([1, 16]))
    workload = SCENARIO["workload"] | {
        "requests": 80,
        "arrivals": {"name": "poisson", "rate_per_s": draw(st.sampled_from([30.0, 300.0]))},
    }
    if draw(st.booleans()):
        workload |= {"first_token_timeout_s": 0.5, "timeout_s": 2.0}
    if draw(st.booleans()):
        workload |= {"prefix": [{"name": "shared", "tokens": {"name": "fixed", "tokens": 48}}]}
    policy = {"name": "virtual-usage", "take_above_steps": draw(st.sampled_from([10.0, 60.0]))}
    if draw(st.booleans()):
        policy |= {"give_below_steps": 1e4, "take_above_steps": 1e4}
    return SCENARIO | {
        "workload": workload,
        "seed": draw(st.integers(0, 1000)),
        "engine": draw(st.sampled_from(["vllm-v1", "trtllm"])),
        "memory": {"block_size_tokens": block_size, "num_gpu_blocks": draw(st.sampled_from([960, 3200])) // block_size},
        "scheduler": {
            "ordering": draw(st.sampled_from(["fcfs", "vtc", "sjf", "priority", "srpt"])),
            "batching": {"name": "chunked-prefill", "max_running_requests": draw(st.sampled_from([4, 64]))},
        },
        "measurement": draw(st.sampled_from([{}, {"end_s": 1.0}])),
        "cluster": {
            "accelerator": "l4",
            "replicas": draw(st.integers(2, 3)),
            "routing": draw(st.sampled_from(["round-robin", "least-tokens", "prefix-affinity"])),
            "network_gb_per_s": draw(st.sampled_from([0.01, 1.0])),
            "network": {"devices_per_node": draw(st.sampled_from([1, 8]))},
            "migration": {
                "policy": policy,
                "interval_s": draw(st.sampled_from([0.01, 0.1])),
                "spare_tokens": draw(st.sampled_from([16, 128])),
                "last_tokens": draw(st.sampled_from([0, 16])),
                "most_copies": draw(st.integers(1, 4)),
            },
        },
    }


@settings(max_examples=12, deadline=None)
@given(scenarios())
def test_each_request_ends_once_and_nothing_is_left_behind(tmp_path_factory, scenario):
    _, cluster, result = with_one_outcome_each(scenario, tmp_path_factory.getbasetemp())
    requests = result.requests
    tokens = np.maximum(requests["output_tokens"] - 1, 0).sum()
    assert result.summary["metrics"]["itl_s"]["count"] == tokens or (requests["state"] != "finished").any()
    if "end_s" not in scenario["measurement"]:
        for replica in cluster.replicas:
            memory, arriving = replica.scheduler.memory, replica.scheduler.arriving
            assert memory.free_blocks == memory.total_blocks
            assert not [*arriving.under_way, *arriving.wanting, *arriving.ready]


def test_moving_relieves_replicas_that_run_out_of_memory(tmp_path):
    uneven = SCENARIO | {
        "memory": {"num_gpu_blocks": 150, "block_size_tokens": 16},
        "workload": {
            "requests": 600,
            "arrivals": {"name": "poisson", "rate_per_s": 40.0},
            "prompt_tokens": {"name": "lognormal", "median": 60, "sigma": 1.2, "max": 1500},
            "output_tokens": {"name": "lognormal", "median": 100, "sigma": 1.2, "max": 800},
        },
    }
    cluster = {"accelerator": "l4", "replicas": 4, "network_gb_per_s": 10.0}
    staying, moving = uneven | {"cluster": cluster}, uneven | {"cluster": cluster | {"migration": {"interval_s": 0.05}}}
    moved, stayed = (run(document, tmp_path, check=True).summary for document in (moving, staying))
    figures = moved["migration"]
    assert figures["moves"] > 5
    assert figures["stop_s"]["p99"] < 0.01
    assert moved["preemptions"]["total"] < stayed["preemptions"]["total"]
    assert moved["metrics"]["ttft_s"]["p99"] < stayed["metrics"]["ttft_s"]["p99"]


MOVED = []


@dataclass
class OneMove(Migration):
    """Moves the first request that decodes on replica 0, once."""

    def moves(self, replicas, now_s):
        request = next(iter(replicas[0].decoding), None)
        if MOVED or request is None:
            return []
        MOVED.append(request.tokens_in_memory)
        return [Move(0, 1, request)]


@pytest.mark.parametrize("most_copies", [1, 8])
def test_one_move_by_hand(tmp_path, most_copies):
    """One long request alone: what is sent is all it has, in stages, and only the last tokens keep it waiting."""
    MOVED.clear()
    one = {"requests": 1, "prompt_tokens": {"name": "fixed", "tokens": 1000}}
    workload = {**SCENARIO["workload"], **one, "output_tokens": {"name": "fixed", "tokens": 200}}
    cluster = SCENARIO["cluster"] | {"network": {"devices_per_node": 1, "latency_s": 0.0}, "replicas": 2}
    cluster["migration"] = {"policy": "one", "interval_s": 0.05, "last_tokens": 1, "most_copies": most_copies}
    known = {"one": f"{__name__}:OneMove"}
    with patch.object(registry, "_third_party", lambda kind: known if kind == "migration" else {}):
        document = SCENARIO | {"cluster": cluster, "workload": workload}
        result = Simulation.prepare(document, tmp_path).run(check=True)
    figures = result.summary["migration"]
    assert (figures["moves"], figures["called_off_by_reason"]) == (1, {})
    assert result.requests["replica"].tolist() == [1]
    assert result.requests["output_tokens"].tolist() == [200]
    tokens, rest = divmod(figures["bytes"], KV_BYTES)
    assert rest == 0
    first_copy_s, s_per_token = MOVED[0] * KV_BYTES / 1e9, KV_BYTES / 1e9
    assert figures["copy_s"]["mean"] >= first_copy_s
    last_tokens = round(figures["stop_s"]["mean"] / s_per_token)
    assert figures["stop_s"]["mean"] == pytest.approx(last_tokens * s_per_token)
    if most_copies == 1:
        assert figures["copies"] == 2
        assert last_tokens == tokens - MOVED[0] > 4
    else:
        assert figures["copies"] > 2
        assert 0 < last_tokens <= 3


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ({"cluster": {"replicas": 1}}, "there is one replica"),
        ({"model": "qwen3-next-80b-a3b", "cluster": {"accelerator": "b300"}}, "linear attention"),
        ({"memory": {"prefix_cache": {"index": "radix"}}}, "radix tree"),
        ({"faults": [{"name": "crash", "replica": 0, "at_s": 1.0}]}, "lose requests by faults"),
        ({"scheduler": {"preemption": {"mode": "reject"}}}, "swapped out or rejected"),
    ],
)
def test_what_cannot_move_is_refused(tmp_path, stated, reason):
    document = SCENARIO if "model" not in stated else {key: v for key, v in SCENARIO.items() if key != "memory"}
    with pytest.raises(InputError, match=reason):
        run(merged(document, stated), tmp_path)
