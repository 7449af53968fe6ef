"""Jumping over steps in which nothing is decided gives the same bits as taking them one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.e2e.scenarios import (
    SOME_LINEAR,
    differences,
    hard_examples,
    merged,
    random_scenarios,
    run,
    synthetic,
    write_models,
)
from tests.e2e.step_watch import NS_PER_S, watching

CHAT = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm"},
    "host": {"request_s": 0.0, "per_prompt_token_s": 0.0, "async_scheduling": False},
    "seed": 3,
    "slo": {"ttft_s": {"p99": 1.0}, "tpot_s": {"p99": 0.03}},
}
POISSON = {"name": "poisson", "rate_per_s": 30.0}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fast-forward")
    write_models(folder)
    return folder


@settings(max_examples=100, deadline=None, derandomize=True)
@given(scenario=random_scenarios())
@hard_examples
def test_random_scenarios(scenario, folder):
    jumping, stepping = run(scenario, folder, check=True), run(scenario, folder, fast_forward=False, check=True)
    assert differences(jumping, stepping) == []


@settings(max_examples=40, deadline=None, derandomize=True)
@given(scenario=random_scenarios((SOME_LINEAR,)))
def test_states_of_linear_attention(scenario, folder):
    jumping, stepping = run(scenario, folder, check=True), run(scenario, folder, fast_forward=False, check=True)
    assert differences(jumping, stepping) == []


@settings(max_examples=40, deadline=None, derandomize=True)
@given(scenario=random_scenarios((SOME_LINEAR,)), blocks=st.integers(1, 3), kept=st.sampled_from([2, 1, 40]))
def test_prefixes_that_are_found_by_kept_states(folder, scenario, blocks, kept):
    interval = {"state_interval_tokens": blocks * scenario["memory"]["block_size_tokens"], "kept_states": kept}
    chat = {"name": "chat", "turns": {"name": "uniform", "low": 1, "high": 5}}
    chat["think_time_s"] = {"name": "exponential", "mean_s": 0.01}
    workload = synthetic({"name": "poisson", "rate_per_s": 300.0}, (1, 40), (1, 20), requests=25)
    scenario = scenario | {
        "memory": scenario["memory"] | {"prefix_caching": True, "prefix_cache": interval},
        "workload": workload | {"session": chat},
    }
    jumping, stepping = run(scenario, folder, check=True), run(scenario, folder, fast_forward=False, check=True)
    assert differences(jumping, stepping) == []


@pytest.mark.parametrize(
    "changes",
    {
        "near saturation": {"workload": synthetic(POISSON, (100, 1900), (10, 390), requests=2000)},
        "short of memory": {
            "workload": synthetic(POISSON, (100, 1900), (10, 390), requests=1000),
            "memory": {"num_gpu_blocks": 2000},
        },
        "three replicas, interrupted by arrivals": {
            "workload": synthetic({"name": "gamma", "rate_per_s": 40.0, "cv": 2.0}, (10, 900), (1, 400), requests=1500),
            "cluster": {"replicas": 3},
        },
        "two replicas short of memory, cut off": {
            "workload": synthetic(POISSON, (10, 900), (1, 400), requests=1500),
            "cluster": {"replicas": 2},
            "memory": {"num_gpu_blocks": 600},
            "measurement": {"warmup_s": 3.0, "end_s": 20.0},
        },
        "windows crossed all the time": {
            "model": "gemma-3-27b",
            "workload": synthetic({"name": "poisson", "rate_per_s": 3.0}, (900, 1100), (10, 300), requests=150),
        },
        "windows that are full": {
            "model": "mistral-7b",
            "workload": synthetic({"name": "poisson", "rate_per_s": 1.0}, (3900, 4500), (10, 300), requests=100),
        },
        "clients that wait": {
            "workload": synthetic({"name": "closed-loop", "concurrency": 64}, (100, 1900), (10, 390), requests=1000),
        },
        "one long output after another, priced as arrays": {
            "workload": synthetic({"name": "poisson", "rate_per_s": 0.2}, (10, 50), (2000, 7000), requests=10),
        },
    }.values(),
    ids=lambda changes: "",
)
def test_long_runs(changes, tmp_path):
    scenario = merged(CHAT, changes)
    jumping, stepping = run(scenario, tmp_path), run(scenario, tmp_path, fast_forward=False)
    assert differences(jumping, stepping) == []
    assert len(np.unique(jumping.requests["state"])) == (2 if "measurement" in changes else 1)


@pytest.mark.parametrize("end_s", [0.5, 0.777, 1.2345])
def test_the_end_cuts_a_jump_where_it_would_cut_a_step(end_s, tmp_path):
    """Five long outputs and no arrival after the first moments: one jump would cover all that is left."""
    workload = synthetic({"name": "poisson", "rate_per_s": 2000.0}, 100, 5000, requests=5)
    scenario = merged(CHAT, {"model": "smollm2-135m", "workload": workload, "measurement": {"end_s": end_s}})
    jumping, stepping = run(scenario, tmp_path), run(scenario, tmp_path, fast_forward=False)
    assert differences(jumping, stepping) == []
    assert jumping.requests["output_tokens"].min() > 300 * end_s


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("offset_ns", [-1, 0, 1])
def test_an_arrival_at_the_very_end_of_a_step_is_served_by_the_next(replicas, offset_ns, tmp_path):
    """It ends a jump on time: a nanosecond later it would have to wait for another step."""
    rows = [(0.0, 100, 400)] * replicas
    changes = {"cluster": {"replicas": replicas}, "host": {"async_scheduling": False}, "workload": {"rows": rows}}
    scenario = merged(CHAT, changes)
    with watching() as watch:
        run(scenario, tmp_path, fast_forward=False)
    ends_ns = [end_ns for _, end_ns, _ in watch.steps[0]]
    arrival_ns = ends_ns[200] + offset_ns
    scenario["workload"] = {"rows": [*rows, (f"{arrival_ns / NS_PER_S:.9f}", 50, 20)]}
    jumping, stepping = run(scenario, tmp_path), run(scenario, tmp_path, fast_forward=False)
    assert differences(jumping, stepping) == []
    scheduled_ns = round(float(jumping.requests["first_scheduled_s"][replicas]) * NS_PER_S)
    assert scheduled_ns == ends_ns[201 if offset_ns > 0 else 200]
