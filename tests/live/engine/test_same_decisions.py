"""With the live clock replayed, the simulator decides what the live engine decided, plan by plan."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fidelity.decisions import first_difference, replayed
from policies.registry import built_in_names
from simcore.build.simulation import Simulation
from tests.live.engine.fake_model import fake_live_run

SHARED = [{"name": "shared", "tokens": {"name": "fixed", "tokens": 40}, "among": 3, "zipf": 1.0}]


def document(
    blocks: int = 60,
    block_size: int = 4,
    caching: bool = True,
    ordering: Any = "fcfs",
    batching: dict[str, Any] | None = None,
    mode: str = "recompute",
    victim: str = "latest",
    requests: int = 40,
    rate_per_s: float = 60.0,
    **workload: Any,
) -> dict[str, Any]:
    """Little memory, many requests, some of which begin with the same text."""
    return {
        "model": "smollm2-135m",
        "cluster": {"accelerator": "cpu-generic"},
        "memory": {
            "num_gpu_blocks": blocks, "block_size_tokens": block_size, "prefix_caching": caching, "swap_space_gb": 0.05,
        },
        "scheduler": {
            "ordering": ordering,
            "batching": batching or {"name": "chunked-prefill", "max_batched_tokens": 48, "max_running_requests": 12},
            "preemption": {"mode": mode, "victim": victim},
        },
        "workload": {
            "requests": requests,
            "arrivals": {"name": "poisson", "rate_per_s": rate_per_s},
            "prompt_tokens": {"name": "uniform", "low": 45, "high": 90},
            "output_tokens": {"name": "uniform", "low": 1, "high": 40},
            "prefix": SHARED,
            "tenants": [
                {"name": "a", "share": 0.7, "priority": 1}, {"name": "b", "share": 0.3, "priority": 0},
            ],
            **workload,
        },
    }  # fmt: skip


def hold(described: dict[str, Any], seed: int) -> tuple[Simulation, Any]:
    """Run live, replay, and compare; returns the live replica."""
    simulation, replica, result = fake_live_run(described, seed)
    memory = replica.scheduler.memory
    assert memory.free_blocks == memory.total_blocks
    assert not replica.live.ends.sequences
    assert set(result.requests["state"]) <= {"finished", "rejected"}
    simulated = replayed(simulation, replica.live.times.columns()["step_ns"].tolist()).plans
    assert replica.plans
    assert first_difference(replica.plans, simulated) is None
    assert len(simulated) == len(replica.plans)
    return result, replica


@pytest.mark.parametrize(
    ("ordering", "mode", "victim"),
    [
        ("fcfs", "recompute", "latest"),
        ("fcfs", "swap", "latest"),
        ({"name": "sjf", "predictor": {"name": "oracle"}}, "recompute", "latest"),
        ("priority", "recompute", "lowest-priority"),
        ("priority", "swap", "lowest-priority"),
        ("vtc", "recompute", "latest"),
        ("longest-prefix", "recompute", "latest"),
    ],
)
@pytest.mark.parametrize("caching", [True, False])
def test_decisions_are_the_same_under_memory_pressure(ordering: Any, mode: str, victim: str, caching: bool) -> None:
    result, replica = hold(document(ordering=ordering, mode=mode, victim=victim, caching=caching), 5)
    assert sum(len(plan.preempted) for plan in replica.plans) > 0
    if mode == "swap":
        assert sum(len(plan.swapped_in) for plan in replica.plans) > 0
    if caching:
        assert result.requests["cached_tokens"].sum() > 0


LIVE_BATCHING = [name for name in built_in_names("batching") if name != "prefill-turns"]
"""``prefill-turns`` needs a radix index, and a live engine has a hash index."""


@pytest.mark.parametrize("name", LIVE_BATCHING)
def test_decisions_are_the_same_with_every_batching_policy(name: str) -> None:
    hold(document(blocks=400, batching={"name": name}), 1)


@pytest.mark.parametrize("name", built_in_names("ordering"))
def test_decisions_are_the_same_with_every_ordering(name: str) -> None:
    hold(document(ordering=name), 2)


@pytest.mark.parametrize(
    "workload",
    [
        {"arrivals": {"name": "closed-loop", "concurrency": 7, "think_time_s": 0.02}},
        {"session": {"name": "chat", "turns": {"name": "uniform", "low": 1, "high": 3},
                     "think_time_s": {"name": "uniform", "low_s": 0.0, "high_s": 0.1}}},
        {"session": {"name": "agents", "fan_out": {"name": "fixed", "tokens": 2}, "join": True}},
    ],
    ids=["closed loop", "chat sessions", "agents"],
)  # fmt: skip
def test_decisions_are_the_same_whoever_sends(workload: dict[str, Any]) -> None:
    result, _ = hold(document(blocks=200, **workload), 3)
    assert (result.requests["state"] == "finished").all()


@pytest.mark.parametrize("patience", [{"first_token_timeout_s": 0.3}, {"timeout_s": 0.3}])
def test_decisions_are_the_same_where_clients_give_up(patience: dict[str, Any]) -> None:
    described = document(blocks=60, rate_per_s=200.0, tenants=None, **patience)
    simulation, replica, result = fake_live_run(described, 4)
    assert (result.requests["state"] == "rejected").any()
    simulated = replayed(simulation, replica.live.times.columns()["step_ns"].tolist()).plans
    assert first_difference(replica.plans, simulated) is None
    assert replica.scheduler.memory.free_blocks == replica.scheduler.memory.total_blocks


@settings(max_examples=25)
@given(
    st.builds(
        document,
        blocks=st.integers(34, 200),
        block_size=st.sampled_from((1, 4, 16)),
        caching=st.booleans(),
        ordering=st.sampled_from(("fcfs", "sjf", "priority", "vtc", "longest-prefix", "mlfq")),
        batching=st.builds(
            lambda tokens, running: {
                "name": "chunked-prefill",
                "max_batched_tokens": tokens,
                "max_running_requests": running,
            },
            st.integers(8, 200),
            st.integers(1, 20),
        ),
        mode=st.sampled_from(("recompute", "swap", "wait", "reject")),
        requests=st.integers(1, 30),
        rate_per_s=st.sampled_from((5.0, 50.0, 1000.0)),
    ),
    st.integers(0, 2**32),
)
def test_random_scenarios_are_decided_alike(described: dict[str, Any], seed: int) -> None:
    blocks, size = described["memory"]["num_gpu_blocks"], described["memory"]["block_size_tokens"]
    described["memory"]["num_gpu_blocks"] = blocks * max(4 // size, 1)
    hold(described, seed)
