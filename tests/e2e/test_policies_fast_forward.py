"""Whatever the policies, jumping over steps gives the same bits as taking them one by one, and all books add up."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.registry import KINDS, built_in_names
from tests.e2e.scenarios import differences, length, run

STEP_S = 1.2e-3
"""About how long a step of the model takes."""
TIGHT: dict[str, dict[str, Any]] = {
    "circuit-breaker": {"ttft_s": 6 * STEP_S, "window": 4, "open_s": 20 * STEP_S, "probes": 2},
    "concurrency-limit": {"max_requests": 6, "per_tenant": True},
    "leaky-bucket": {"rate_per_s": 0.3 / STEP_S, "capacity": 3.0},
    "queue-limit": {"max_waiting_requests": 3},
    "sliding-window": {"limit": 5.0, "window_s": 20 * STEP_S},
    "token-bucket": {"rate_per_s": 0.3 / STEP_S, "burst": 3.0, "per_tenant": True},
    "watermark": {"low": 0.2, "high": 0.5, "critical": 0.8, "short_prompt_tokens": 20},
    "credit": {"tokens_per_window": 100.0, "window_s": 30 * STEP_S, "credits": {"b": 200.0}},
    "drf": {"weights": {"b": 2.0}},
    "drr": {"quantum_tokens": 60, "weights": {"b": 2.0}},
    "edf": {"ttft_s": 50 * STEP_S, "ttft_s_by_priority": {0: 5 * STEP_S}},
    "hybrid": {"lowest_share": 0.3, "window_s": 25 * STEP_S},
    "mlfq": {"levels": 4, "quantum_tokens": 4, "starvation_s": 10 * STEP_S},
    "priority": {"ageing_s": 20 * STEP_S, "minimum_share": {2: 0.2}, "window_s": 25 * STEP_S},
    "two-level": {"inner": {"name": "sjf"}},
    "vtc": {"weights": {"b": 2.0}},
    "wfq": {"weights": {"b": 2.0}},
    "prefill-turns": {"mixed": True, "displaces_beyond": 0},
    "bucketed": {"edges_tokens": (10, 30)},
    "chunked-prefill": {"tpot_target_s": 1.005 * STEP_S, "min_chunk_tokens": 3},
    "decode-prefill-alternate": {"decode_steps": 3},
    "dynamic": {"window_s": 10 * STEP_S},
    "group-balanced": {"max_waiting_steps": 5, "gathering_steps": 2},
    "in-flight": {"max_waiting_steps": 4, "enough_tokens_share": 0.7},
    "queue-aware": {"min_running_requests": 1, "full_at_waiting": 5},
    "slo-feedback": {
        "ttft_p99_s": 10 * STEP_S,
        "tpot_p99_s": 1.2 * STEP_S,
        "min_batched_tokens": 4,
        "window": 5,
        "every": 2,
    },
}
"""Parameters on the scale of the scenarios, so that each policy has something to decide."""
SORTING = ("as-queued", "depth-first", "edf", "fcfs", "longest-output", "longest-prefix", "sjf", "two-level")
"""Orderings by a key that neither displace nor promote."""
PREDICTED = ("sjf", "srpt", "hybrid")
TENANTS = [
    {"name": "a", "share": 0.6, "priority": 2},
    {"name": "b", "share": 0.3, "priority": 1},
    {"name": "c", "share": 0.1, "priority": 0},
]


def choice(name: str) -> dict[str, Any]:
    """A policy with parameters that bite."""
    return {"name": name, **TIGHT.get(name, {})}


@st.composite
def crowded_scenarios(draw: st.DrawFn, kind: str, name: str) -> dict[str, Any]:
    """Several tenants and levels, few slots, little memory; the policy of this kind is given, the others are drawn."""

    def drawn(other: str) -> dict[str, Any]:
        return choice(name if other == kind else draw(st.sampled_from(built_in_names(other))))

    prompt_high = draw(st.sampled_from([40, 12, 120]))
    output_high = draw(st.sampled_from([40, 8, 70]))
    block_size = draw(st.sampled_from([4, 1, 16]))
    blocks_of_longest = -(-(prompt_high + output_high - 1) // block_size)
    predictor = {"name": name if kind == "prediction" else draw(st.sampled_from(built_in_names("prediction")))}
    predictor["corrected"] = draw(st.booleans())
    ordering, batching, victim = drawn("ordering"), drawn("batching"), drawn("preemption")
    if kind == "prediction":
        ordering = choice(draw(st.sampled_from(PREDICTED)))
    if ordering["name"] in (*PREDICTED, "wfq", "credit"):
        ordering["predictor"] = predictor
    if victim["name"] == "longest-remaining":
        victim["predictor"] = predictor
    batching["max_running_requests"] = draw(st.sampled_from([3, 8, 2, 1]))
    if batching["name"] == "bucketed":
        batching["by"] = draw(st.sampled_from(["length", "state"]))
    if batching["name"] == "chunked-prefill" and draw(st.booleans()):
        batching = {"name": "chunked-prefill", "max_running_requests": batching["max_running_requests"]}
    if batching["name"] != "slo-feedback":
        batching["max_batched_tokens"] = draw(st.sampled_from([64, 300, 17]))
    preemption = {"victim": victim, "mode": draw(st.sampled_from(["recompute", "wait", "reject"]))}
    if preemption["mode"] == "wait":
        preemption["inherit_priority"] = draw(st.booleans())
    if draw(st.booleans()):
        preemption["reserved_blocks"] = {0: 1 + blocks_of_longest // 2, 1: 1 + blocks_of_longest // 3}
    rate_per_s = draw(st.sampled_from([1.0, 0.2, 10.0, 0.05])) / STEP_S
    arrivals: dict[str, Any] = {"name": "gamma", "rate_per_s": rate_per_s, "cv": 2.0}
    if draw(st.integers(0, 3)) == 3:
        arrivals = {"name": "closed-loop", "concurrency": draw(st.integers(1, 12)), "think_time_s": 2 * STEP_S}
    tenants = [
        {**tenant, **draw(st.sampled_from([{}, {}, {"timeout_s": 30 * STEP_S}, {"first_token_timeout_s": 4 * STEP_S}]))}
        for tenant in TENANTS
    ]
    scenario = {
        "model": "smollm2-135m",
        "seed": draw(st.integers(0, 1000)),
        "cluster": {"accelerator": "h100-sxm", "replicas": draw(st.sampled_from([1, 1, 2]))},
        "memory": {
            "num_gpu_blocks": 1 + round(blocks_of_longest * draw(st.sampled_from([2, 1.2, 4, 20]))),
            "block_size_tokens": block_size,
            "prefix_caching": draw(st.booleans()),
        },
        "scheduler": {
            "ordering": ordering,
            "batching": batching,
            "preemption": preemption,
            "reserve_whole_prompt": draw(st.booleans()),
            "admission": [drawn("admission")] if kind == "admission" or draw(st.integers(0, 4)) == 4 else [],
        },
        "workload": {
            "requests": draw(st.integers(8, 30)),
            "arrivals": arrivals,
            "prompt_tokens": length((1, prompt_high)),
            "output_tokens": length((1, output_high)),
            "tenants": tenants,
        },
        "slo": {"ttft_s": {"p90": 20 * STEP_S}, "tpot_s": {"p50": 2 * STEP_S}},
        "measurement": draw(st.sampled_from([{}, {}, {"end_s": 40 * STEP_S}])),
    }
    return in_turns(scenario) if batching["name"] == "prefill-turns" else scenario


def in_turns(scenario: dict[str, Any]) -> dict[str, Any]:
    """The scenario without what does not go with prompts and decodes in turns."""
    scheduler, memory = scenario["scheduler"], scenario["memory"]
    scheduler["preemption"] = {"victim": scheduler["preemption"]["victim"]}
    scheduler["reserve_whole_prompt"] = True
    if scheduler["ordering"]["name"] not in SORTING:
        scheduler["ordering"] = {"name": "two-level", "inner": {"name": "as-queued"}}
    return scenario | {"memory": memory | {"prefix_cache": {"index": "radix"}}}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in KINDS for name in built_in_names(kind) if kind != "routing"]
)
def test_every_policy(kind, name, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()

    @settings(max_examples=12, deadline=None, derandomize=True, database=None)
    @given(scenario=crowded_scenarios(kind, name))
    def jumps_as_it_steps(scenario):
        jumping, stepping = run(scenario, folder, check=True), run(scenario, folder, fast_forward=False, check=True)
        assert differences(jumping, stepping) == []

    jumps_as_it_steps()
