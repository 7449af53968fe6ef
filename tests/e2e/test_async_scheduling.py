"""An engine that schedules a step while the one before runs sees who came meanwhile one step later."""

from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.registry import built_in_names
from simcore.scheduling.scheduler import Scheduler
from tests.e2e.scenarios import differences, length, merged, random_scenarios, run, write_models
from tests.e2e.step_watch import NS_PER_S, watching
from tests.e2e.test_policies_fast_forward import crowded_scenarios
from tests.e2e.test_tiers_fast_forward import offloading_scenarios, run_with_content

CHAT = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm"},
    "host": {"request_s": 0.0, "per_prompt_token_s": 0.0, "async_scheduling": True},
}
INTERVALS = (1, 2, 7, 30)
IN_FLIGHT = [{"name": "in-flight", "max_waiting_steps": steps, "enough_tokens_share": 0.6} for steps in (0, 3, 40)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("async_scheduling")
    write_models(folder)
    return folder


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    scenario=random_scenarios(),
    async_scheduling=st.booleans(),
    batching=st.sampled_from([*IN_FLIGHT, *({"receive_interval_steps": steps} for steps in INTERVALS)]),
)
def test_jumps_and_steps_agree(scenario, async_scheduling, batching, folder):
    limits = {key: scenario["scheduler"]["batching"][key] for key in ("max_batched_tokens", "max_running_requests")}
    scheduler = scenario["scheduler"] | {"batching": {"name": "prefill-first"} | limits | batching}
    scenario = scenario | {
        "scheduler": scheduler,
        "host": {"request_s": 0.0, "per_prompt_token_s": 0.0, "async_scheduling": async_scheduling},
    }
    jumping, stepping = run(scenario, folder, check=True), run(scenario, folder, fast_forward=False, check=True)
    assert differences(jumping, stepping) == []


@st.composite
def full_slots(draw, name):
    """Long outputs in few slots, so that jumps are long and those who come meanwhile find no room."""
    scenario = draw(crowded_scenarios("ordering", name))
    predictor = {"name": draw(st.sampled_from(["class-mean", "moving-average", "prompt-linear"]))}
    ordering = scenario["scheduler"]["ordering"]
    if "predictor" in ordering:
        ordering["predictor"] = predictor
    slots = draw(st.sampled_from([2, 3, 4]))
    batching = {"name": "chunked-prefill", "max_running_requests": slots, "max_batched_tokens": 300}
    scenario["scheduler"]["batching"] = batching
    scenario["workload"]["output_tokens"] = length((1, 70))
    changes = {
        "memory": {"num_gpu_blocks": 3000},
        "host": {"request_s": 0.0, "per_prompt_token_s": 0.0, "async_scheduling": True},
    }
    return merged(scenario, changes)


@pytest.mark.parametrize("name", built_in_names("ordering"))
def test_jumps_and_steps_agree_whatever_orders_the_queue(name, folder):
    """Keys may be what was learnt by the time at which a request enters the queue."""

    @settings(max_examples=12, deadline=None, derandomize=True, database=None)
    @given(scenario=full_slots(name))
    def jumps_as_it_steps(scenario):
        assert differences(run(scenario, folder), run(scenario, folder, fast_forward=False)) == []

    jumps_as_it_steps()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(scenario=offloading_scenarios(), replicas=st.sampled_from([1, 2, 3]))
def test_jumps_and_steps_agree_with_memory_below_the_gpus(scenario, replicas, folder):
    changes = {
        "host": {"request_s": 0.0, "per_prompt_token_s": 0.0, "async_scheduling": True},
        "cluster": {"replicas": replicas},
    }
    scenario = merged(scenario, changes)
    jumping, stepping = (run_with_content(scenario, folder, fast_forward=jumps) for jumps in (True, False))
    assert differences(jumping, stepping) == []


def test_prefetching_begins_when_the_scheduler_sees_a_request_though_all_slots_are_taken(folder):
    gigabytes_per_s = 7.68
    scenario = {
        "model": "smollm2-135m",
        "seed": 493,
        "cluster": {"accelerator": "h100-sxm"},
        "host": {"request_s": 0.0, "per_prompt_token_s": 0.0, "async_scheduling": True},
        "memory": {
            "num_gpu_blocks": 81,
            "block_size_tokens": 4,
            "tiers": [
                {"name": "cpu", "capacity_gb": 0.00373248},
                {
                    "name": "ssd",
                    "capacity_gb": 0.27652608,
                    "read_gb_per_s": gigabytes_per_s,
                    "write_gb_per_s": gigabytes_per_s,
                },
            ],
            "prefetch_from_tiers": True,
            "host_link": {"to_gpu_gb_per_s": gigabytes_per_s, "from_gpu_gb_per_s": gigabytes_per_s},
        },
        "scheduler": {
            "batching": {"name": "chunked-prefill", "max_running_requests": 2, "max_batched_tokens": 64},
            "reserve_whole_prompt": False,
        },
        "workload": {
            "requests": 40,
            "arrivals": {"name": "gamma", "rate_per_s": 833.0, "cv": 2.0},
            "prompt_tokens": length((40, 120)),
            "output_tokens": length((1, 40)),
        },
    }
    jumping, stepping = (run_with_content(scenario, folder, fast_forward=jumps) for jumps in (True, False))
    assert jumping.summary["links"]["ssd to CPU"]["bytes"] > 0
    assert differences(jumping, stepping) == []


@pytest.mark.parametrize("async_scheduling", [False, True])
@pytest.mark.parametrize("offset_ns", [-1, 0, 1])
@pytest.mark.parametrize("replicas", [1, 2])
def test_who_comes_during_a_step_waits_for_one_more(async_scheduling, offset_ns, replicas, tmp_path):
    """Step 201 begins when step 200 ends; with async scheduling it was scheduled when step 200 began."""
    changes = {"host": {"async_scheduling": async_scheduling}, "cluster": {"replicas": replicas}}
    scenario = merged(CHAT, {**changes, "workload": {"rows": [(0.0, 100, 400)] * replicas}})
    with watching() as watch:
        run(scenario, tmp_path, fast_forward=False)
    ends_ns = [end_ns for _, end_ns, _ in watch.steps[0]]
    arrival_ns = ends_ns[200] + offset_ns
    scenario["workload"] = {"rows": [*[(0.0, 100, 400)] * replicas, (f"{arrival_ns / NS_PER_S:.9f}", 50, 20)]}
    jumping, stepping = run(scenario, tmp_path), run(scenario, tmp_path, fast_forward=False)
    assert differences(jumping, stepping) == []
    scheduled_ns = round(float(jumping.requests["first_scheduled_s"][replicas]) * NS_PER_S)
    assert scheduled_ns == ends_ns[200 + (offset_ns > 0) + async_scheduling]


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_step_that_is_scheduled_when_somebody_comes_is_part_of_the_jump(replicas, tmp_path):
    """One plan for the first prompt, one for its decodes, two for the second's, one for the rest of the first.

    The last but one finds nobody but who has ended, the last nobody at all.
    """
    rows = [*[(0.0, 100, 400)] * replicas, (1.0, 50, 20)]
    scenario = merged(CHAT, {"cluster": {"replicas": replicas}, "workload": {"rows": rows}})
    with patch.object(Scheduler, "plan", autospec=True, side_effect=Scheduler.plan) as plan:
        jumping = run(scenario, tmp_path)
        plans = [call.args[0] for call in plan.call_args_list]
    assert sum(scheduler is plans[0] for scheduler in plans) == 7
    assert differences(jumping, run(scenario, tmp_path, fast_forward=False)) == []


@pytest.mark.parametrize("async_scheduling", [False, True])
def test_who_comes_while_nobody_runs_is_served_at_once(async_scheduling, tmp_path):
    rows = [(0.0, 100, 3), (5.0, 100, 3), (5.0, 100, 3)]
    result = run(merged(CHAT, {"host": {"async_scheduling": async_scheduling}, "workload": {"rows": rows}}), tmp_path)
    assert result.requests["first_scheduled_s"].tolist() == [0.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("host", "idle_steps"), [({}, 1), ({"async_scheduling": True}, 1), ({"async_scheduling": False}, 0)]
)
def test_who_has_ended_keeps_its_slot_for_one_more_step(host, idle_steps, tmp_path):
    """By default too, as in vLLM; a scenario may say otherwise."""
    scenario = {
        **CHAT,
        "host": {"request_s": 0.0, "per_prompt_token_s": 0.0, **host},
        "scheduler": {"batching": {"max_running_requests": 2}},
        "workload": {"rows": [(0.0, 100, 40), (0.0, 100, 20), (0.0, 100, 20)]},
    }
    with watching() as watch:
        result = run(scenario, tmp_path, fast_forward=False)
    ends_ns = [end_ns for _, end_ns, _ in watch.steps[0]]
    scheduled_ns, end_ns = (
        round(float(result.requests[name][request]) * NS_PER_S)
        for name, request in (("first_scheduled_s", 2), ("end_s", 1))
    )
    assert ends_ns.index(scheduled_ns) - ends_ns.index(end_ns) == idle_steps
    assert differences(run(scenario, tmp_path), result) == []


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
