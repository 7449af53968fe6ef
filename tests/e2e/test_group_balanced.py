"""Prompts that wait for those of other data groups, in whole runs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.build.simulation import Simulation
from simcore.core.errors import InputError
from tests.e2e.scenarios import differences, merged, run, synthetic

MOE = {
    "model": "gpt-oss-20b",
    "engine": "trtllm",
    "cluster": {"accelerator": "h100-sxm", "data_parallel": 4, "expert_parallel": 4},
    "memory": {"prefix_caching": False},
    "workload": {
        "requests": 120,
        "arrivals": {"name": "closed-loop", "concurrency": 24},
        "prompt_tokens": {"name": "uniform", "low": 100, "high": 900},
        "output_tokens": {"name": "uniform", "low": 1, "high": 60},
    },
}


def balanced(**parameters):
    return {"scheduler": {"batching": {"name": "group-balanced", **parameters}}}


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    steps=st.tuples(st.sampled_from([1, 2, 7, 50]), st.sampled_from([0, 1, 10])),
    budget=st.sampled_from([4000, 8192]),
    slots=st.sampled_from([3, 2048]),
    async_scheduling=st.booleans(),
    arrivals=st.sampled_from(
        [
            {"name": "closed-loop", "concurrency": 24},
            {"name": "poisson", "rate_per_s": 30.0},
            {"name": "gamma", "rate_per_s": 60.0, "cv": 4.0},
        ]
    ),
    patience=st.sampled_from([{}, {"first_token_timeout_s": 0.05}, {"timeout_s": 0.3}]),
    blocks=st.sampled_from([None, 160, 80]),
    mode=st.sampled_from(["wait", "recompute", "swap", "reject"]),
    replicas=st.sampled_from([1, 2]),
    seed=st.integers(0, 99),
)
def test_jumps_and_steps_agree(
    steps, budget, slots, async_scheduling, arrivals, patience, blocks, mode, replicas, seed, tmp_path_factory
):
    parameters = {"max_waiting_steps": steps[0], "gathering_steps": steps[1]}
    limits = {"max_batched_tokens": budget, "max_running_requests": slots}
    changes = {
        "host": {"async_scheduling": async_scheduling},
        "cluster": {"replicas": replicas},
        "memory": {"num_gpu_blocks": blocks},
        "scheduler": {"preemption": {"mode": mode}},
        "seed": seed,
        "workload": MOE["workload"] | {"arrivals": arrivals} | patience,
    }
    scenario = merged(merged(MOE, balanced(**parameters, **limits)), changes)
    folder = tmp_path_factory.mktemp("balanced")
    jumping, stepping = run(scenario, folder, check=True), run(scenario, folder, fast_forward=False, check=True)
    assert differences(jumping, stepping) == []
    states = set(jumping.requests["state"])
    assert "unfinished" not in states
    assert patience or mode == "reject" or states == {"finished"}


def test_who_was_displaced_and_has_as_long_a_prompt_as_may_be_is_let_in_again(tmp_path):
    """Nobody runs by then, and nobody else comes."""
    scenario = {
        "model": "smollm2-135m",
        "cluster": {"accelerator": "h100-sxm"},
        "memory": {"num_gpu_blocks": 28, "block_size_tokens": 16, "prefix_caching": False},
        "scheduler": {"ordering": {"name": "mlfq", "levels": 4, "quantum_tokens": 4, "starvation_s": 0.03}},
        "workload": synthetic({"name": "closed-loop", "concurrency": 8}, 257, (20, 60), requests=11),
    }
    result = run(merged(scenario, balanced(max_batched_tokens=257, gathering_steps=2)), tmp_path, check=True)
    assert result.summary["preemptions"]["total"] == result.requests["preemptions"].sum() > 0
    assert (result.requests["state"] == "finished").all()


def test_prompts_that_wait_for_each_other_hold_up_fewer_steps(tmp_path):
    """Fewer steps have prompts, so that tokens come sooner, and the first ones later."""
    longer = {"workload": MOE["workload"] | {"output_tokens": {"name": "uniform", "low": 100, "high": 300}}}
    alone, together = run(MOE | longer, tmp_path), run(MOE | longer | balanced(), tmp_path)
    assert (together.steps["prefill_tokens"] > 0).sum() < (alone.steps["prefill_tokens"] > 0).sum() / 2
    for metric, sign in (("tpot_s", -1), ("ttft_s", 1)):
        change = together.summary["metrics"][metric]["mean"] - alone.summary["metrics"][metric]["mean"]
        assert sign * change > 0


@pytest.mark.parametrize(
    ("engine", "batching", "limits"),
    [
        ("trtllm", {}, (4 * 8192, 4 * 2048)),
        ("trtllm", {"batching": "group-balanced"}, (4 * 8192, 4 * 2048)),
        ("trtllm", {"batching": {"name": "group-balanced", "max_batched_tokens": 9000}}, (9000, 4 * 2048)),
        ("vllm-v1", {"batching": {"max_running_requests": 100}}, (4 * 8192, 100)),
        ("sglang", {}, (8192, 2048)),
    ],
)
def test_limits_that_are_not_stated_are_those_of_each_group(engine, batching, limits, tmp_path):
    scenario = Simulation.prepare(MOE | {"engine": engine, "scheduler": batching}, tmp_path).scenario
    found = scenario.scheduler.batching
    assert (found["max_batched_tokens"], found["max_running_requests"]) == limits
    again = Simulation.prepare(scenario.document(), tmp_path).scenario
    assert again.scheduler.batching == found


def test_there_are_as_many_groups_as_the_cluster_has(tmp_path):
    scenario = Simulation.prepare(merged(MOE, balanced()), tmp_path).scenario
    assert scenario.scheduler.batching["data_parallel_ranks"] == 4
    with pytest.raises(InputError, match=r"scheduler\.batching\.data_parallel_ranks is 2, expected 4, as cluster"):
        Simulation.prepare(merged(MOE, balanced(data_parallel_ranks=2)), tmp_path)
