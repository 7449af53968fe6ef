"""An engine that schedules a step while the one before runs sees who came meanwhile one step later."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.e2e.scenarios import differences, merged, random_scenarios, run, write_models
from tests.e2e.step_watch import NS_PER_S, watching

CHAT = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm"},
    "host": {"request_s": 0.0, "overlapped": True},
}
INTERVALS = (1, 2, 7, 30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("overlapped")
    write_models(folder)
    return folder


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    scenario=random_scenarios(),
    overlapped=st.booleans(),
    batching=st.sampled_from([{"name": "in-flight"}, *({"receive_interval_steps": steps} for steps in INTERVALS)]),
)
def test_jumps_and_steps_agree(scenario, overlapped, batching, folder):
    limits = {key: scenario["scheduler"]["batching"][key] for key in ("max_batched_tokens", "max_running_requests")}
    scheduler = scenario["scheduler"] | {"batching": {"name": "prefill-first"} | limits | batching}
    scenario = scenario | {"scheduler": scheduler, "host": {"request_s": 0.0, "overlapped": overlapped}}
    jumping, stepping = run(scenario, folder, check=True), run(scenario, folder, fast_forward=False, check=True)
    assert differences(jumping, stepping) == []


@pytest.mark.parametrize("overlapped", [False, True])
@pytest.mark.parametrize("offset_ns", [-1, 0, 1])
@pytest.mark.parametrize("replicas", [1, 2])
def test_who_comes_during_a_step_waits_for_one_more(overlapped, offset_ns, replicas, tmp_path):
    """Step 201 begins when step 200 ends; overlapped it was scheduled when step 200 began."""
    changes = {"host": {"overlapped": overlapped}, "cluster": {"replicas": replicas}}
    scenario = merged(CHAT, {**changes, "workload": {"rows": [(0.0, 100, 400)] * replicas}})
    with watching() as watch:
        run(scenario, tmp_path, fast_forward=False)
    ends_ns = [end_ns for _, end_ns, _ in watch.steps[0]]
    arrival_ns = ends_ns[200] + offset_ns
    scenario["workload"] = {"rows": [*[(0.0, 100, 400)] * replicas, (f"{arrival_ns / NS_PER_S:.9f}", 50, 20)]}
    jumping, stepping = run(scenario, tmp_path), run(scenario, tmp_path, fast_forward=False)
    assert differences(jumping, stepping) == []
    scheduled_ns = round(float(jumping.requests["first_scheduled_s"][replicas]) * NS_PER_S)
    assert scheduled_ns == ends_ns[200 + (offset_ns > 0) + overlapped]


@pytest.mark.parametrize("overlapped", [False, True])
def test_who_comes_while_nobody_runs_is_served_at_once(overlapped, tmp_path):
    rows = [(0.0, 100, 3), (5.0, 100, 3), (5.0, 100, 3)]
    result = run(merged(CHAT, {"host": {"overlapped": overlapped}, "workload": {"rows": rows}}), tmp_path)
    assert result.requests["first_scheduled_s"].tolist() == [0.0, 5.0, 5.0]


def test_a_client_may_give_up_before_the_scheduler_sees_its_request(tmp_path):
    long = (0.0, 100, 400)
    with watching() as watch:
        run(merged(CHAT, {"workload": {"rows": [long]}}), tmp_path, fast_forward=False)
    start_ns, end_ns, _ = watch.steps[0][200]
    rows = [long, (f"{(start_ns + 1) / NS_PER_S:.9f}", 50, 20)]
    workload = {"rows": rows, "first_token_timeout_s": 1.3 * (end_ns - start_ns) / NS_PER_S}
    scenario = merged(CHAT, {"workload": workload})
    jumping, stepping = run(scenario, tmp_path, check=True), run(scenario, tmp_path, fast_forward=False, check=True)
    assert differences(jumping, stepping) == []
    assert jumping.requests["state"].tolist() == ["finished", "rejected"]
