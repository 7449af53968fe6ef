"""Whole runs with prefill and decode in different pools: nobody is lost, nothing leaks, jumps change nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.build.simulation import Simulation
from simcore.core.errors import InputError
from tests.e2e.outcomes import with_one_outcome_each
from tests.e2e.scenarios import merged, run

PREFILL = {"name": "p", "role": "prefill", "accelerator": "l4"}
DECODE = {"name": "d", "role": "decode", "accelerator": "l4"}
SCENARIO = {
    "model": "smollm2-135m",
    "cluster": {"pools": [PREFILL, DECODE]},
    "workload": {
        "requests": 80,
        "arrivals": {"name": "poisson", "rate_per_s": 60.0},
        "prompt_tokens": {"name": "uniform", "low": 1, "high": 400},
        "output_tokens": {"name": "uniform", "low": 1, "high": 60},
    },
}
KV_BYTES = 2 * 30 * 3 * 64 * 2
"""Of a token of SmolLM2-135M: keys and values of 30 layers, 3 heads of 64 numbers of 2 bytes."""


@st.composite
def scenarios(draw):
    block_size = draw(st.sampled_from([1, 16]))
    pools = [PREFILL | {"replicas": draw(st.integers(1, 2))}, DECODE | {"replicas": draw(st.integers(1, 2))}]
    if draw(st.booleans()):
        pools.append({"name": "m", "accelerator": "l4"})
    rate = {"network_gb_per_s": draw(st.sampled_from([0.01, 50.0]))}
    workload = SCENARIO["workload"] | {
        "arrivals": {"name": "poisson", "rate_per_s": draw(st.sampled_from([30.0, 300.0]))}
    }
    if draw(st.booleans()):
        workload |= {"first_token_timeout_s": 0.5, "timeout_s": 1.0}
    if draw(st.booleans()):
        workload |= {"prefix": [{"name": "shared", "tokens": {"name": "fixed", "tokens": 48}}]}
    return SCENARIO | {
        "seed": draw(st.integers(0, 1000)),
        "engine": draw(st.sampled_from(["vllm-v1", "trtllm"])),
        "memory": {"block_size_tokens": block_size, "num_gpu_blocks": draw(st.sampled_from([640, 3200])) // block_size},
        "scheduler": {
            "ordering": draw(st.sampled_from(["fcfs", "vtc", "sjf", "priority", "srpt"])),
            "batching": {"name": "chunked-prefill", "max_running_requests": draw(st.sampled_from([4, 64]))},
        },
        "measurement": draw(st.sampled_from([{}, {"end_s": 1.0}])),
        "cluster": {
            **rate,
            "pools": pools,
            "network": {"devices_per_node": draw(st.sampled_from([1, 8]))},
            "handover": {
                "transfer": draw(st.sampled_from(["whole", "layers"])),
                "lost_share": draw(st.sampled_from([0.0, 0.3, 1.0])),
                "retries": draw(st.integers(0, 2)),
            },
        },
    }


@settings(max_examples=12, deadline=None)
@given(scenarios())
def test_each_request_ends_once_and_nothing_is_left_behind(tmp_path_factory, scenario):
    _, cluster, result = with_one_outcome_each(scenario, tmp_path_factory.getbasetemp())
    requests = result.requests
    assert result.summary["metrics"]["itl_s"]["count"] == np.maximum(requests["output_tokens"] - 1, 0).sum() or (
        (requests["state"] != "finished").any()
    )
    if "end_s" not in scenario["measurement"]:
        for replica in cluster.replicas:
            memory, scheduler = replica.scheduler.memory, replica.scheduler
            assert memory.free_blocks == memory.total_blocks
            assert not scheduler.held
            assert scheduler.arriving is None or not (scheduler.arriving.under_way or scheduler.arriving.wanting)


def alone(transfer, tmp_path, **cluster):
    """One request of 320 tokens in, 11 out, with nobody beside it."""
    lengths = {
        "requests": 1,
        "arrivals": {"name": "at-once"},
        "prompt_tokens": {"name": "fixed", "tokens": 320},
        "output_tokens": {"name": "fixed", "tokens": 11},
    }
    apart = {"network": {"devices_per_node": 1, "latency_s": 0.001}, "handover": {"transfer": transfer}}
    pools = [PREFILL | {"network_gb_per_s": 1.0}, DECODE | {"network_gb_per_s": 1.0}]
    return run(SCENARIO | {"workload": lengths, "cluster": {"pools": pools, **apart, **cluster}}, tmp_path)


def test_kv_takes_its_bytes_over_the_slowest_link_and_the_latency(tmp_path):
    figures = alone("whole", tmp_path).summary["handover"]
    assert figures["bytes"] == 320 * KV_BYTES
    assert figures["transfer_wait_s"]["mean"] == pytest.approx(0.001 + 320 * KV_BYTES / 1e9, abs=2e-9)


def test_layers_that_move_while_others_are_computed_hide_the_step(tmp_path):
    whole, layers = (alone(transfer, tmp_path).requests for transfer in ("whole", "layers"))
    step_s = whole["first_token_s"][0] - whole["first_scheduled_s"][0]
    assert step_s > 0.002
    assert whole["landed_s"][0] - layers["landed_s"][0] == pytest.approx(step_s, abs=1e-6)


def test_the_last_layer_moves_after_the_step(tmp_path):
    pools = [PREFILL, DECODE]
    requests = alone("layers", tmp_path, pools=pools).requests
    last_s = 0.001 + 320 * KV_BYTES / 30 / 50e9
    assert requests["landed_s"][0] - requests["first_token_s"][0] == pytest.approx(last_s, abs=2e-9)


def test_two_pools_alone_are_one_replica_but_for_the_transfer(tmp_path):
    split = alone("whole", tmp_path)
    one = run(split.scenario | {"cluster": {"accelerator": "l4"}}, tmp_path)
    assert split.requests["ttft_s"][0] == one.requests["ttft_s"][0]
    waited = split.requests["landed_s"][0] - split.requests["first_token_s"][0]
    assert split.requests["e2e_s"][0] == pytest.approx(one.requests["e2e_s"][0] + waited, rel=1e-3)


def test_a_lost_transfer_is_sent_again_and_then_computed(tmp_path):
    result = alone("whole", tmp_path, handover={"transfer": "whole", "lost_share": 1.0, "retries": 2})
    figures = result.summary["handover"]
    assert (figures["transfers"], figures["recomputed"], figures["bytes"]) == (3, 1, 3 * 320 * KV_BYTES)
    assert result.requests["preemptions"].tolist() == [1]
    assert result.summary["pools"]["d"]["utilisation"]["prefill_tokens"] == 321
    assert result.requests["state"].tolist() == ["finished"]


def test_without_room_to_decode_prompts_wait_where_they_were_computed(tmp_path):
    small = DECODE | {"memory": {"num_gpu_blocks": 40}}
    result = run(merged(SCENARIO, {"cluster": {"pools": [PREFILL, small]}}), tmp_path)
    assert result.summary["counts"]["finished"] == 80
    assert result.summary["handover"]["room_wait_s"]["p99"] > 0.1
    full = PREFILL | {"memory": {"num_gpu_blocks": 60}}
    tight = run(merged(SCENARIO, {"cluster": {"pools": [full, small]}}), tmp_path)
    assert tight.summary["metrics"]["queue_s"]["mean"] > 2 * result.summary["metrics"]["queue_s"]["mean"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cluster": {"pools": [PREFILL]}}, r"cluster\.pools\.0\.role is 'prefill', expected a pool of role decode"),
        ({"cluster": {"pools": [DECODE]}}, r"cluster\.pools\.0\.role is 'decode', expected a pool of role prefill"),
        ({"cluster": {"accelerator": "l4", "handover": {}}}, r"cluster\.handover is 'layers', expected none"),
        (
            {"cluster": {"pools": [PREFILL, DECODE | {"precision": {"kv_cache": "fp8"}}]}},
            r"cluster\.pools\.1\.precision is 'fp8', expected a KV cache of the same bytes per token",
        ),
        (
            {"cluster": {"pools": [PREFILL, DECODE]}, "engine": "sglang"},
            r"cluster\.pools\.0\.scheduler\.batching\.name is 'prefill-turns'",
        ),
        (
            {"cluster": {"pools": [PREFILL, DECODE | {"scheduler": {"preemption": {"mode": "swap"}}}]}},
            r"cluster\.pools\.1\.scheduler\.preemption\.mode is 'swap'",
        ),
    ],
)
def test_roles_that_do_not_go_together_are_refused(changes, message, tmp_path):
    with pytest.raises(InputError, match=message):
        Simulation.prepare(SCENARIO | changes, tmp_path)
