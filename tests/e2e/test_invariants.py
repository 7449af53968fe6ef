"""What must hold on every run, whatever the scenario.

``SERVETWIN_SCENARIOS`` is how many random ones are tried. All books are recounted after every step.
"""

import os
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings

from simcore.metrics.definitions import PERCENTILES
from simcore.scheduling.state import SchedulerState
from simcore.workload import ClosedLoop
from tests.e2e.scenarios import (
    ALL_WINDOWS,
    SOME_WINDOWS,
    differences,
    hard_examples,
    merged,
    prepare,
    random_scenarios,
    run,
    synthetic,
    write_models,
)
from tests.e2e.step_watch import NS_PER_S, watching

SCENARIOS = int(os.environ.get("SERVETWIN_SCENARIOS", "100"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("invariants")
    write_models(folder)
    return folder


def true_lengths(scenario, folder):
    """Prompt and output tokens of all requests of a scenario, read from its workload."""
    if "rows" in scenario["workload"]:
        _, prompts, outputs = zip(*scenario["workload"]["rows"], strict=True)
        return np.array(prompts), np.array(outputs)
    workload = prepare(scenario, folder).workload
    batches = [workload.requests] if isinstance(workload, ClosedLoop) else list(workload.batches())
    return tuple(np.concatenate([getattr(b, name) for b in batches]) for name in ("prompt_tokens", "output_tokens"))


@contextmanager
def noting_who_is_preempted_after_the_end():
    """Requests that scheduling ahead preempts though they have their last token: they are done, and lose nothing."""
    found, preempt = [], SchedulerState.preempt

    def noting(state, request, *arguments):
        if request.number in state.ending:
            found.append(request.number)
        preempt(state, request, *arguments)

    with patch.object(SchedulerState, "preempt", noting):
        yield found


PREEMPTED_AFTER_THE_END = {
    "model": "gemma-3-27b",
    "cluster": {"accelerator": "h100-sxm", "replicas": 1},
    "memory": {"num_gpu_blocks": 77, "block_size_tokens": 1, "prefix_caching": False},
    "scheduler": {
        "batching": {"name": "chunked-prefill", "max_batched_tokens": 17, "max_running_requests": 8},
        "reserve_whole_prompt": False,
    },
    "workload": synthetic({"name": "poisson", "rate_per_s": 100 / 3}, 1, (1, 19), requests=30),
    "measurement": {},
}


def test_a_request_may_be_preempted_after_its_last_token(folder):
    with noting_who_is_preempted_after_the_end() as had_ended:
        result = run(PREEMPTED_AFTER_THE_END, folder, check=True)
    assert len(had_ended) == 1
    assert result.requests["state"][had_ended[0]] == "finished"
    assert result.summary["preemptions"]["total"] == result.requests["preemptions"].sum() + 1


@settings(max_examples=SCENARIOS, deadline=None, derandomize=True)
@given(scenario=random_scenarios())
@hard_examples
def test_nothing_is_lost_and_nothing_comes_before_its_cause(scenario, folder):
    with noting_who_is_preempted_after_the_end() as had_ended:
        result = run(scenario, folder, check=True)
    summary, requests, steps = result.summary, result.requests, result.steps
    counts = summary["counts"]
    prompts, outputs = true_lengths(scenario, folder)
    finished, rejected, unfinished = (requests["state"] == s for s in ("finished", "rejected", "unfinished"))

    # Every request once, in order of arrival, and none lost.
    arrived = counts["arrived"]
    assert requests["request_id"].tolist() == list(range(arrived))
    assert (np.diff(requests["arrival_s"]) >= 0).all()
    assert arrived == counts["finished"] + counts["rejected"] + counts["unfinished"]
    if "end_s" not in scenario["measurement"]:
        assert (arrived, counts["unfinished"]) == (len(prompts), 0)

    # Each gets its own length: all of it, none of it, or less.
    assert (requests["prompt_tokens"] == prompts[:arrived]).all()
    assert (requests["output_tokens"][finished] == outputs[:arrived][finished]).all()
    assert (requests["output_tokens"][rejected] == 0).all()
    assert (requests["output_tokens"][unfinished] < outputs[:arrived][unfinished]).all()
    memory = prepare(scenario, folder).memory
    batched_tokens = memory.demand.max_batched_tokens
    most_blocks = [
        memory.layout.most_blocks_held(tokens, batched_tokens) for tokens in (prompts + outputs - 1).tolist()
    ]
    assert (rejected == (np.array(most_blocks) > memory.request_blocks)[:arrived]).all()

    # Cause before effect.
    for earlier, later in zip(
        ("arrival_s", "first_scheduled_s", "first_token_s"),
        ("first_scheduled_s", "first_token_s", "end_s"),
        strict=True,
    ):
        assert (requests[earlier][finished] <= requests[later][finished]).all()
        assert not (requests[earlier][unfinished] > requests[later][unfinished]).any()
    assert (requests["first_scheduled_s"][finished] < requests["first_token_s"][finished]).all()
    assert np.isnan(requests["first_token_s"][requests["output_tokens"] == 0]).all()
    assert not np.isnan(requests["first_token_s"][requests["output_tokens"] > 0]).any()
    assert (np.isnan(requests["tpot_s"]) == (~finished | (requests["output_tokens"] < 2))).all()

    # One step at a time on each replica, and never more memory than there is.
    for replica in range(scenario["cluster"]["replicas"]):
        own = steps["replica"] == replica
        assert (steps["end_s"][own] >= steps["start_s"][own]).all()
        assert (steps["start_s"][own][1:] >= steps["end_s"][own][:-1]).all()
    assert summary["kv"]["peak_used_blocks"] <= summary["kv"]["blocks_per_replica"]
    assert (steps["used_blocks"] <= summary["kv"]["peak_used_blocks"]).all()
    busy_s = (steps["end_s"] - steps["start_s"]).sum()
    assert busy_s <= summary["run"]["simulated_s"] * scenario["cluster"]["replicas"] * (1 + 1e-12)
    assert summary["preemptions"]["total"] == requests["preemptions"].sum() + len(had_ended)
    assert summary["preemptions"]["requests"] == (requests["preemptions"] > 0).sum()


@settings(max_examples=SCENARIOS, deadline=None, derandomize=True)
@given(scenario=random_scenarios())
@hard_examples
def test_every_token_is_accounted_for(scenario, folder):
    """The books of a run against a record of every token and step, which is kept apart from them.

    Requests come to the queue as they arrive, since what the API server takes stands in no row of steps.
    """
    scenario = merged(scenario, {"host": {"request_s": 0.0, "per_prompt_token_s": 0.0}})
    with watching() as watch:
        result = run(scenario, folder, fast_forward=False, check=True)
    summary, requests, steps = result.summary, result.requests, result.steps
    times = [watch.token_times_ns[number] for number in requests["request_id"].tolist()]

    assert requests["output_tokens"].tolist() == [len(tokens) for tokens in times]
    first_s = [tokens[0] / NS_PER_S if tokens else np.nan for tokens in times]
    assert np.array_equal(requests["first_token_s"], first_s, equal_nan=True)
    finished = np.flatnonzero(requests["state"] == "finished")
    assert [times[index][-1] / NS_PER_S for index in finished] == requests["end_s"][finished].tolist()

    # Each token after a request's first ends a gap; the gaps' percentiles are those of the gaps one by one.
    gaps_s, itl = watch.gaps_s(scenario["measurement"].get("warmup_s", 0.0)), summary["metrics"]["itl_s"]
    assert itl["count"] == len(gaps_s)
    if gaps_s:
        assert [itl["min"], itl["max"]] == [min(gaps_s), max(gaps_s)]
        expected = [np.mean(gaps_s), *np.percentile(gaps_s, list(PERCENTILES.values()))]
        assert [itl[name] for name in ("mean", *PERCENTILES)] == pytest.approx(expected, rel=1e-9)
    else:
        assert itl["mean"] is itl["p50"] is itl["p999"] is None

    # Each token takes a step of its own or ends a prefill; a prefill is computed again after a preemption only,
    # less what is still cached.
    completed_steps = steps["steps"] > 0
    assert steps["prefill_tokens"][completed_steps].sum() == sum(watch.chunk_tokens.values())
    for index in finished:
        number, prompt = requests["request_id"][index], requests["prompt_tokens"][index]
        computed = watch.chunk_tokens[int(number)]
        assert computed == prompt if requests["preemptions"][index] == 0 else computed >= prompt
    taken = sum(map(len, watch.steps.values()))
    assert (steps["steps"].sum(), summary["utilisation"]["steps"]) == (taken, taken)

    # Little's law, to the nanosecond: requests in the system, added up over time, are times in the system, added up.
    if "end_s" not in scenario["measurement"]:
        assert requests_in_system_ns(watch, requests) == time_in_system_ns(requests)


def time_in_system_ns(requests):
    """Nanoseconds that all requests spent in the system."""
    arrival_ns, end_ns = (np.rint(requests[name] * NS_PER_S).astype(np.int64) for name in ("arrival_s", "end_s"))
    return int((end_ns - arrival_ns).sum())


def requests_in_system_ns(watch, requests):
    """The integral over all steps of the number of requests that the schedulers held."""
    total = 0
    for replica, steps in watch.steps.items():
        arrivals_ns = np.rint(requests["arrival_s"][requests["replica"] == replica] * NS_PER_S).astype(np.int64)
        for start_ns, end_ns, in_system in steps:
            # Counted at the end, those that came during the step included; take off the time before they came.
            came = arrivals_ns[(arrivals_ns > start_ns) & (arrivals_ns < end_ns)]
            total += in_system * (end_ns - start_ns) - int((came - start_ns).sum())
    return total


@pytest.mark.parametrize(
    "workload",
    [
        synthetic({"name": "poisson", "rate_per_s": 0.5}, 100, 400, requests=20),
        synthetic({"name": "closed-loop", "concurrency": 32}, 100, 600, requests=64),
        synthetic({"name": "poisson", "rate_per_s": 10.0}, (100, 1900), (10, 390), requests=200),
    ],
    ids=["mostly alone", "all in step", "busy"],
)
def test_the_mean_of_the_memory_in_use_is_one_over_time(workload, folder):
    """It grows within a row of the steps table, which states what is in use at the row's start."""
    scenario = {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm"}, "workload": workload}
    with watching() as watch:
        summary = run(scenario, folder, fast_forward=False).summary
    block_s = watch.block_ns / NS_PER_S
    expected = block_s / summary["run"]["simulated_s"] / summary["kv"]["blocks_per_replica"]
    assert summary["kv"]["mean_used_share"] == pytest.approx(expected, rel=0.05)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(scenario=random_scenarios())
def test_the_same_seed_gives_the_same_bits(scenario, folder):
    assert differences(run(scenario, folder), run(scenario, folder)) == []


def test_another_seed_gives_another_run(folder):
    scenario = {
        "model": "smollm2-135m",
        "cluster": {"accelerator": "h100-sxm"},
        "workload": synthetic({"name": "poisson", "rate_per_s": 50.0}, (1, 100), (1, 100), requests=50),
    }
    assert differences(run(scenario, folder), run(merged(scenario, {"seed": 1}), folder))


def test_random_scenarios_reach_what_they_are_for(folder):
    """Preemptions, stalled decodes, rejections, cut-offs and window crossings all happen among the examples."""
    expected = {"rejected", "unfinished", "preempted", "preempted twice", "stalled", SOME_WINDOWS, ALL_WINDOWS}
    seen = set()

    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    @given(scenario=random_scenarios())
    def look(scenario):
        if seen == expected:
            return
        with watching() as watch:
            result = run(scenario, folder, fast_forward=False)
        counts = result.summary["counts"]
        seen.update(state for state in ("rejected", "unfinished") if counts[state])
        if result.summary["preemptions"]["total"]:
            seen.add("preempted")
        if watch.stalled_steps:
            seen.add("stalled")
        if (result.requests["preemptions"] > 1).any():
            seen.add("preempted twice")
        if scenario["model"] in (SOME_WINDOWS, ALL_WINDOWS) and counts["finished"]:
            seen.add(scenario["model"])

    look()
    assert seen == expected
