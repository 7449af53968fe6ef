"""Results from the literature, or from first principles, that policies must show."""

import numpy as np
import pytest

from policies.ordering.fcfs import FirstComeFirstServed
from policies.ordering.sjf import ShortestJobFirst
from policies.prediction.oracle import Oracle
from policies.registry import built_in_names
from simcore.core.request import Request
from simcore.scheduling.waiting_queue import KeyedQueue
from tests.e2e.scenarios import run, synthetic
from tools.policy_cases import (
    BACKLOG_BLOCKS,
    BACKLOG_PROMPT,
    BURSTS,
    SATURATED,
    SCHEMES,
    backlog,
    long_prompt,
    output_tokens_per_busy_s,
    scheme,
    single_slot,
    toy,
)

BLOCK_TOKENS = 16


@pytest.mark.parametrize(("name", "s_per_token"), [("fcfs", (1 + 12 / 2 + 13) / 3), ("sjf", (1 + 3 / 2 + 13 / 10) / 3)])
def test_the_example_of_learning_to_rank(name, s_per_token):
    """6.67 and 1.27 s per token: exactly on a server of one token a second, and within 0.1% through the engine."""
    ordering = {"fcfs": FirstComeFirstServed(), "sjf": ShortestJobFirst(Oracle())}[name]
    outputs = (10, 2, 1)
    queue = KeyedQueue(ordering)
    for number, tokens in enumerate(outputs):
        request = Request(number, 0, 1)
        for predictor in ordering.predictors:
            predictor.reveal(request, tokens)
        queue.push(request, 0.0)
    now_s, latencies = 0, []
    while queue.size:
        tokens = outputs[queue.pop().number]
        now_s += tokens
        latencies.append(now_s / tokens)
    assert np.mean(latencies) == pytest.approx(s_per_token, rel=1e-15)
    requests = toy(name).requests
    assert (requests["e2e_s"] / requests["output_tokens"]).mean() == pytest.approx(s_per_token, rel=1e-3)


@pytest.mark.parametrize("rate_per_s", [5.0, 1e6], ids=["over time", "all at once"])
def test_the_shortest_first_has_the_least_mean_latency_on_one_slot(rate_per_s):
    means = {name: single_slot(name, rate_per_s).requests["e2e_s"].mean() for name in built_in_names("ordering")}
    best, second, *others = sorted(means, key=means.__getitem__)
    assert (best, second) == ("srpt", "sjf")
    assert means["sjf"] < 0.8 * means["fcfs"]
    assert others


def services(ordering, end_s, slots=64):
    """Weighted service of both tenants, and the greatest difference between them."""
    result = backlog(ordering, end_s, slots)
    for name in ("a", "b"):
        waiting = np.isnan(result.requests["first_scheduled_s"]) & (result.requests["tenant"] == name)
        assert waiting.sum() > 100, "both must have requests waiting all along"
    fairness = result.summary["fairness"]
    return [fairness["tenants"][name]["service"] for name in ("a", "b")], fairness["max_service_difference"]


def test_vtc_bounds_the_difference_of_service_and_fcfs_does_not():
    """Theorem 4.4 of Sheng et al.: |W_a - W_b| <= 2 max(w_p L_input, w_q M), M the most tokens in a running batch."""
    bound = 2 * max(1.0 * BACKLOG_PROMPT, 2.0 * (BACKLOG_BLOCKS - 1) * BLOCK_TOKENS)
    short, long = (services("vtc", end_s)[1] for end_s in (4.0, 8.0))
    assert 0 < short <= bound
    assert 0 < long <= bound
    unfair_short, unfair_long = (services("fcfs", end_s)[1] for end_s in (4.0, 8.0))
    assert unfair_short > 3 * bound
    assert unfair_long == pytest.approx(2 * unfair_short, rel=0.1)


def test_weights_of_vtc_divide_the_service():
    (a, b), _ = services({"name": "vtc", "weights": {"b": 2.0}}, 8.0)
    assert b / a == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("weight", [1.0, 2.0])
@pytest.mark.parametrize(
    "ordering",
    [
        {"name": "drr", "quantum_tokens": 700},
        {"name": "wfq", "predictor": {"name": "oracle"}},
    ],
    ids=["drr", "wfq"],
)
def test_shares_of_tokens_are_within_a_quantum(ordering, weight):
    """At no time are two waiting tenants further apart than a quantum and one request of each tenant.

    For wfq, which has no quantum, one request of each (Golestani 1994, theorem 1). One slot, so that what is admitted
    is served before the next decision.
    """
    requests = backlog({**ordering, "weights": {"b": weight}}, 100.0, slots=1, rate_per_s=20.0).requests
    done = np.flatnonzero(requests["state"] == "finished")
    done = done[np.argsort(requests["first_scheduled_s"][done])]
    tokens = requests["prompt_tokens"] + requests["output_tokens"]
    served = {
        name: np.cumsum(np.where(requests["tenant"][done] == name, tokens[done], 0)) / share
        for name, share in (("a", 1.0), ("b", weight))
    }
    largest = tokens[done].max()
    allowed = largest * (1 + 1 / weight) + ordering.get("quantum_tokens", 0)
    assert np.abs(served["a"] - served["b"]).max() <= allowed
    assert served["a"][-1] > 20 * allowed


def test_ageing_bounds_who_may_overtake(tmp_path):
    ageing_s, levels = 0.2, (3, 1, 0)
    workload = synthetic({"name": "gamma", "rate_per_s": 100.0, "cv": 3.0}, (10, 300), (5, 150), requests=1000)
    workload["tenants"] = [
        {"name": str(level), "share": share, "priority": level}
        for level, share in zip(levels, (0.4, 0.3, 0.3), strict=True)
    ]
    scenario = {
        "model": "smollm2-135m",
        "cluster": {"accelerator": "h100-sxm"},
        "scheduler": {
            "ordering": {"name": "priority", "ageing_s": ageing_s},
            "batching": {"name": "chunked-prefill", "max_running_requests": 4},
        },
        "workload": workload,
    }
    requests = run(scenario, tmp_path).requests
    arrival_s, start_s, priority = requests["arrival_s"], requests["first_scheduled_s"], requests["priority"]
    overtaken = (arrival_s[:, None] < arrival_s) & (start_s[:, None] > start_s)
    ahead_s = (priority[:, None] - priority) * ageing_s
    later_s = arrival_s - arrival_s[:, None]
    assert (later_s[overtaken] <= ahead_s[overtaken] + 1e-9).all()
    assert later_s[overtaken].max() > 0.9 * 3 * ageing_s, "and the bound is reached"


def test_continuous_batching_beats_batches_that_wait_for_their_longest():
    """Long-tailed outputs and a full queue: a static and a dynamic batch are then the same, both always full."""
    rates = {name: output_tokens_per_busy_s(scheme(name, SATURATED)) for name in SCHEMES}
    assert rates["static"] == rates["dynamic"]
    assert 3 * rates["dynamic"] < rates["prefill-first"] < rates["chunked-prefill"]


def test_a_window_makes_fuller_batches_where_bursts_meet_an_idle_server():
    """The static batch starts with the first of a burst alone, and the others wait until it is done."""
    rates = [output_tokens_per_busy_s(scheme(name, BURSTS)) for name in SCHEMES]
    assert rates == sorted(rates)
    assert rates[0] < 0.9 * rates[1] < 0.9**2 * rates[2]


def test_chunks_spare_running_requests_the_pause_of_a_long_prompt():
    def p99_itl_s(batching, documents=1):
        return long_prompt(batching, documents).summary["metrics"]["itl_s"]["p99"]

    undisturbed = p99_itl_s({"name": "chunked-prefill"}, documents=0)
    whole = p99_itl_s({"name": "prefill-first", "max_batched_tokens": 32768})
    by_budget = [p99_itl_s({"name": "chunked-prefill", "max_batched_tokens": budget}) for budget in (8192, 2048, 512)]
    assert whole > by_budget[0] > by_budget[1] > by_budget[2] > undisturbed
    assert whole > 100 * undisturbed
    assert by_budget[2] < whole / 20


@pytest.mark.parametrize("target_s", [0.02, 0.05])
def test_adaptive_chunks_keep_every_step_within_its_target_and_waste_little_of_it(target_s):
    result = long_prompt({"name": "chunked-prefill", "tpot_target_s": target_s})
    itl_s = result.summary["metrics"]["itl_s"]
    assert 0.99 * target_s < itl_s["p99"] <= itl_s["max"] <= target_s


def test_adaptive_chunks_are_quicker_than_a_fixed_budget_that_keeps_the_same_target():
    fixed = long_prompt({"name": "chunked-prefill", "max_batched_tokens": 512})
    worst_s = fixed.summary["metrics"]["itl_s"]["max"]
    adaptive = long_prompt({"name": "chunked-prefill", "tpot_target_s": worst_s})
    assert adaptive.summary["metrics"]["itl_s"]["max"] <= worst_s
    assert adaptive.requests["ttft_s"][-1] < fixed.requests["ttft_s"][-1]
