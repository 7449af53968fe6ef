"""With tiers below GPU memory and with swapping, jumping over steps still gives the bits of taking them one by one."""

from typing import Any
from unittest.mock import patch

from hypothesis import example, given, settings
from hypothesis import strategies as st

from policies.registry import built_in_names
from simcore.core.content import Content, Run
from simcore.memory.kv_bytes import KvFormat, kv_bytes_per_token
from simcore.models import load_model
from simcore.service.service import Router
from tests.e2e.scenarios import differences, length, run
from tests.e2e.test_policies_fast_forward import STEP_S, TENANTS, choice

BYTES_PER_TOKEN = kv_bytes_per_token(load_model("smollm2-135m"), KvFormat())
DOCUMENTS = 7
SHARES = {"tenant_shares": {"a": 0.5, "b": 0.3}}


def content_of(number: int, prompt_tokens: int) -> Content:
    """A shared document, as long as the prompt has room for, and a question of its own."""
    shared = min(prompt_tokens, 13 * (2 + number * 7 % 9))
    document = number * 5 % DOCUMENTS
    prompt = [Run(document * 10_000, shared), Run((1 + number) * 10**6, prompt_tokens - shared)]
    return Content(prompt, (1 + number) * 10**9)


def run_with_content(scenario, folder, **options):
    """Simulate a scenario whose requests share documents."""
    receive = Router.receive

    def receive_with_content(self, request, output_tokens):
        request.content = content_of(request.number, request.prompt_tokens)
        receive(self, request, output_tokens)

    with patch.object(Router, "receive", receive_with_content):
        return run(scenario, folder, **options)


@st.composite
def offloading_scenarios(draw: st.DrawFn) -> dict[str, Any]:
    """Little GPU memory, tiers from too small to large, links from slower than computing to far faster."""

    def drawn(kind: str) -> dict[str, Any]:
        names = [name for name in built_in_names(kind) if name != "prefill-turns"]  # tiers need a hash index
        return choice(draw(st.sampled_from(names)))

    prompt_high = draw(st.sampled_from([120, 40]))
    output_high = draw(st.sampled_from([40, 8, 70]))
    block_size = draw(st.sampled_from([4, 1, 16]))
    blocks_of_longest = -(-(prompt_high + output_high - 1) // block_size)
    block_gb = block_size * BYTES_PER_TOKEN / 1e9
    simple = draw(st.booleans())
    ordering, batching, victim = drawn("ordering"), drawn("batching"), drawn("preemption")
    if simple:
        ordering, batching = {"name": "fcfs"}, {"name": "chunked-prefill"}
    batching["max_running_requests"] = draw(st.sampled_from([8, 3, 2, 1]))
    if batching["name"] != "slo-feedback":
        batching["max_batched_tokens"] = draw(st.sampled_from([64, 300, 17]))

    def rate() -> float:
        return block_gb / (STEP_S * draw(st.sampled_from([0.01, 0.3, 3.0])))

    def latency() -> float:
        return draw(st.sampled_from([0.0, 0.7, 4.0])) * STEP_S

    def capacity() -> float:
        return block_gb * (0.5 + draw(st.sampled_from([3000, 300, 40, 7, 1])))

    tiers: list[dict[str, Any]] = []
    for name in draw(st.sampled_from([("cpu", "ssd", "remote"), ("cpu",), ("cpu", "ssd"), ("ssd", "remote"), ()])):
        tiers.append({"name": name, "capacity_gb": capacity()})
        if name != "cpu":
            tiers[-1] |= {"read_gb_per_s": rate(), "write_gb_per_s": rate(), "latency_s": latency()}
    preemption = {"victim": victim, "mode": draw(st.sampled_from(["swap", "recompute", "wait", "reject"]))}
    if draw(st.integers(0, 3)) == 3:
        preemption["reserved_blocks"] = {0: 1 + blocks_of_longest // 2, 1: 1 + blocks_of_longest // 3}
    rate_per_s = draw(st.sampled_from([1.0, 0.2, 10.0, 0.05])) / STEP_S
    arrivals: dict[str, Any] = {"name": "gamma", "rate_per_s": rate_per_s, "cv": 2.0}
    patience = draw(
        st.sampled_from(
            [{}, {"first_token_timeout_s": 15 * STEP_S}, {"timeout_s": 40 * STEP_S}, {"timeout_s": 8 * STEP_S}]
        )
    )
    if draw(st.integers(0, 3)) == 3:
        arrivals = {"name": "closed-loop", "concurrency": draw(st.integers(1, 12)), "think_time_s": 2 * STEP_S}
    return {
        "model": "smollm2-135m",
        "seed": draw(st.integers(0, 1000)),
        "cluster": {"accelerator": "h100-sxm", "replicas": draw(st.sampled_from([1, 1, 2]))},
        "memory": {
            "num_gpu_blocks": 1 + round(blocks_of_longest * draw(st.sampled_from([2, 1.2, 4]))),
            "block_size_tokens": block_size,
            "prefix_caching": bool(tiers) or draw(st.booleans()),
            "prefix_cache": {} if tiers else draw(st.sampled_from([{}, {"index": "radix"}, SHARES])),
            "watermark_share": draw(st.sampled_from([0.0, 0.05])),
            "tiers": tiers,
            "load_from_tiers": draw(st.sampled_from(["always", "if-faster"])),
            "prefetch_from_tiers": draw(st.booleans()),
            "swap_space_gb": capacity(),
            "host_link": {"to_gpu_gb_per_s": rate(), "from_gpu_gb_per_s": rate(), "latency_s": latency()},
        },
        "scheduler": {
            "ordering": ordering,
            "batching": batching,
            "preemption": preemption,
            "reserve_whole_prompt": draw(st.booleans()),
        },
        "workload": {
            "requests": draw(st.sampled_from([40, 20, 60])),
            "arrivals": arrivals,
            "prompt_tokens": length((prompt_high // 3, prompt_high)),
            "output_tokens": length((1, output_high)),
            "tenants": [tenant | patience for tenant in TENANTS],
        },
        "measurement": draw(st.sampled_from([{}, {}, {"end_s": 40 * STEP_S}, {"warmup_s": 10 * STEP_S}])),
    }


ALL_LOADED_BUT_NONE_HAS_ROOM: dict[str, Any] = {
    "model": "smollm2-135m",
    "cluster": {"accelerator": "h100-sxm"},
    "memory": {
        "num_gpu_blocks": 81,
        "block_size_tokens": 4,
        "tiers": [{"name": "cpu", "capacity_gb": 0.3}],
        "host_link": {"to_gpu_gb_per_s": 0.0256},
    },
    "scheduler": {
        "batching": {"name": "decode-prefill-alternate", "max_running_requests": 8, "max_batched_tokens": 64},
        "preemption": {"victim": {"name": "fewest-tokens-lost"}, "mode": "swap"},
        "reserve_whole_prompt": False,
    },
    "workload": {
        "requests": 40,
        "arrivals": {"name": "gamma", "rate_per_s": 1 / STEP_S, "cv": 2.0},
        "prompt_tokens": length((40, 120)),
        "output_tokens": length((1, 40)),
    },
    "measurement": {},
}
"""The batching policy lets nobody in, as whole prompts have no room beside what others have loaded."""


@settings(max_examples=100, deadline=None, derandomize=True)
@given(scenario=offloading_scenarios())
@example(scenario=ALL_LOADED_BUT_NONE_HAS_ROOM)
def test_random_scenarios(scenario, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    jumping = run_with_content(scenario, folder, check=True)
    stepping = run_with_content(scenario, folder, fast_forward=False, check=True)
    assert differences(jumping, stepping) == []
    for name, column in jumping.transfers.items():
        assert (column == stepping.transfers[name]).all()
    counts = jumping.summary["counts"]
    if "end_s" not in scenario["measurement"]:
        assert counts["unfinished"] == 0
