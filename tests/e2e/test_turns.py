"""Whole runs in which prompts and decodes take turns, as SGLang takes them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simcore.core.errors import InputError
from tests.e2e.scenarios import SOME_LINEAR, differences, merged, prepare, run, synthetic, write_models

STEP_S = 1.2e-3
CHAT = {
    "model": "llama-3.1-8b",
    "engine": "sglang",
    "cluster": {"accelerator": "h100-sxm"},
    "workload": synthetic({"name": "poisson", "rate_per_s": 20.0}, (100, 1900), (10, 390), requests=300),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("turns")
    write_models(folder)
    return folder


@st.composite
def scenarios(draw):
    """Requests that share documents, in little memory, so that some give way."""
    page = draw(st.sampled_from([1, 4, 16]))
    prompt, output = draw(st.sampled_from([(40, 40), (12, 70), (120, 8)]))
    tokens = round((prompt + output + 48) * draw(st.sampled_from([1.1, 1.6, 3, 20]))) + 4 * page
    document = {"name": "shared", "tokens": {"name": "uniform", "low": 10, "high": 40}, "among": 3}
    arrivals = {"name": "gamma", "rate_per_s": draw(st.sampled_from([0.05, 0.3, 3.0])) / STEP_S, "cv": 2.0}
    workload = synthetic(arrivals, (1, prompt), (1, output), requests=draw(st.integers(5, 30)), prefix=[document])
    workload |= draw(st.sampled_from([{}, {}, {"timeout_s": 40 * STEP_S}]))
    limit = draw(st.sampled_from([None, output, 2 * output]))
    batching = {
        "max_running_requests": draw(st.sampled_from([2, 4, 30])),
        "max_batched_tokens": draw(st.sampled_from([32, 300])),
        "cut_prompts": draw(st.booleans()),
        "mixed": draw(st.booleans()),
        "commitment": {"name": "new-token-ratio", "conservativeness": draw(st.sampled_from([1.0, 0.01]))},
    }
    return {
        "model": "smollm2-135m",
        "seed": draw(st.integers(0, 1000)),
        "engine": "sglang",
        "cluster": {"accelerator": "h100-sxm", "replicas": draw(st.sampled_from([1, 1, 2]))},
        "host": {"request_s": 0.0, "per_prompt_token_s": 0.0, "async_scheduling": draw(st.booleans())},
        "memory": {"num_gpu_blocks": tokens // page, "block_size_tokens": page, "prefix_caching": draw(st.booleans())},
        "scheduler": {
            "batching": batching,
            "ordering": draw(st.sampled_from(["as-queued", "longest-prefix", "depth-first", "longest-output", "fcfs"])),
            "preemption": {"victim": draw(st.sampled_from(["fewest-generated", "latest"]))},
        },
        "workload": workload | ({} if limit is None else {"max_output_tokens": limit}),
    }


@settings(max_examples=120, deadline=None, derandomize=True)
@given(scenario=scenarios())
def test_jumping_equals_stepping(scenario, folder):
    jumping, stepping = (run(scenario, folder, fast_forward=jumps, check=True) for jumps in (True, False))
    assert differences(jumping, stepping) == []


@settings(max_examples=60, deadline=None, derandomize=True)
@given(scenario=scenarios(), pages=st.sampled_from([1, 2, 5]), kept=st.sampled_from([2, 1, 40]))
def test_jumping_equals_stepping_where_prefixes_need_states(scenario, pages, kept, folder):
    """Of a model with linear attention a prefix is found as far as a state of it was kept."""
    page = scenario["memory"]["block_size_tokens"]
    interval = {"state_interval_tokens": pages * page, "kept_states": kept, "index": "radix"}
    scenario = scenario | {
        "model": SOME_LINEAR,
        "memory": scenario["memory"] | {"prefix_caching": True, "prefix_cache": interval},
    }
    jumping, stepping = (run(scenario, folder, fast_forward=jumps, check=True) for jumps in (True, False))
    assert differences(jumping, stepping) == []
    assert not (jumping.requests["cached_tokens"] % (pages * page)).any()


def test_the_preset_of_sglang_takes_turns_and_finds_what_was_said_before(folder):
    documents = {"name": "shared", "tokens": {"name": "uniform", "low": 300, "high": 1500}, "among": 20}
    scenario = merged(CHAT, {"workload": CHAT["workload"] | {"prefix": [documents]}})
    result = run(scenario, folder)
    steps = result.steps
    assert not ((steps["prefill_tokens"] > 0) & (steps["decoding_requests"] > 0)).any()
    assert result.summary["kv"]["prefix_hit_rate"] > 0.3
    mixed = run(merged(scenario, {"scheduler": {"batching": {"mixed": True}}}), folder)
    assert ((mixed.steps["prefill_tokens"] > 0) & (mixed.steps["decoding_requests"] > 0)).any()


def test_less_set_aside_lets_more_in_and_more_must_give_way(folder):
    """SGLang's conservativeness; what is set aside decays, so a few may give way even where it began with all."""
    arrivals = {"name": "poisson", "rate_per_s": 20.0}
    workload = synthetic(arrivals, (100, 300), (200, 900), requests=150, max_output_tokens=900)
    scenario = merged(CHAT, {"memory": {"num_gpu_blocks": 12_000}}) | {"workload": workload}
    preempted, decoding = [], []
    for conservativeness in (0.02, 1.0, 10.0):
        commitment = {"name": "new-token-ratio", "conservativeness": conservativeness}
        result = run(merged(scenario, {"scheduler": {"batching": {"commitment": commitment}}}), folder)
        preempted.append(result.summary["preemptions"]["total"])
        decoding.append(int(result.steps["decoding_requests"].max()))
    assert preempted[0] > preempted[1] > preempted[2]
    assert decoding[0] > decoding[1]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"memory": {"prefix_cache": {"index": "hash"}}}, "memory.prefix_cache.index"),
        ({"memory": {"prefix_cache": {"tenant_shares": {"a": 0.5}}}}, "memory.prefix_cache.tenant_shares"),
        ({"memory": {"prefix_caching": False, "reservation": "longest"}}, "memory.reservation"),
        ({"memory": {"watermark_share": 0.1}}, "memory.watermark_share"),
        ({"scheduler": {"preemption": {"mode": "wait"}}}, "scheduler.preemption.mode"),
        ({"scheduler": {"preemption": {"reserved_blocks": {0: 5}}}}, "scheduler.preemption.reserved_blocks"),
        ({"scheduler": {"reserve_whole_prompt": False}}, "scheduler.reserve_whole_prompt"),
        ({"scheduler": {"ordering": "vtc"}}, "scheduler.ordering.name"),
        ({"scheduler": {"ordering": "srpt"}}, "scheduler.ordering.name"),
        ({"cluster": {"pipeline_parallel": 2}}, "cluster.pipeline_parallel"),
    ],
)
def test_what_does_not_go_with_turns_is_refused(changes, field, folder):
    with pytest.raises(InputError, match=f"{field} is .* with the batching policy prefill-turns"):
        prepare(merged(CHAT, changes), folder)
