"""Prompts that are pinned: whoever is accepted beside them is served in the end, whatever memory does meanwhile."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simcore.core.errors import InputError
from tests.e2e.scenarios import ALL_WINDOWS, SOME_WINDOWS, differences, merged, prepare, run, synthetic, write_models

BLOCK_SIZE = 8
GROUPS = {"smollm2-135m": 1, SOME_WINDOWS: 7, ALL_WINDOWS: 1, "gpt-oss-20b": 2}
"""KV cache groups of each model."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pinned-memory")
    write_models(folder)
    return folder


def tokens_of(content):
    return [run.first + place for run in content.prompt for place in range(run.tokens)]


def common_blocks(one, other):
    """How many first full blocks two lists of tokens have in common."""
    end = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    return (min(len(one), len(other)) if end is None else end) // BLOCK_SIZE


def most_blocks(simulation, tokens):
    """The most blocks that a request holds at once, by itself."""
    chunked = simulation.scenario.scheduler.batching["name"] == "chunked-prefill"
    chunk_tokens = simulation.memory.demand.max_batched_tokens if chunked else tokens
    return simulation.memory.layout.most_blocks_held(tokens, chunk_tokens)


def rejected_ones(simulation):
    """Which requests of a workload have no room even alone, pinned blocks of their own prefix counted as theirs."""
    plan, cache = simulation.memory, simulation.scenario.memory.prefix_cache
    (batch,) = simulation.workload.batches()
    prompts = list(map(tokens_of, batch.contents))
    pins = [prompt[: cache.pinned_tokens // BLOCK_SIZE * BLOCK_SIZE] for prompt in prompts[: cache.warm_up_requests]]
    full = sum(group.window_tokens is None for group in plan.layout.groups)
    for prompt, output in zip(prompts, batch.output_tokens.tolist(), strict=True):
        found = [common_blocks(prompt[:-1], pin) for pin in pins]
        if plan.layout.releases:
            found = [full * blocks for blocks, pin in zip(found, pins, strict=True) if blocks == len(pin) // BLOCK_SIZE]
        needed = most_blocks(simulation, len(prompt) + output - 1)
        yield needed > plan.request_blocks - plan.pinned_blocks + max(found, default=0)


@st.composite
def scenarios(draw):
    model = draw(st.sampled_from(sorted(GROUPS)))
    pinned_tokens = draw(st.sampled_from([64, 32, 80, 120, 8]))
    among, warm_up_requests = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    # From one prompt pinned and hardly more, to several of them and no shortage at all.
    pinned_blocks = pinned_tokens // BLOCK_SIZE * draw(st.integers(1, min(among, warm_up_requests)))
    own_blocks = draw(st.sampled_from([8, 4, 12, 20, 40])) + draw(st.integers(0, 3))
    memory = {
        "num_gpu_blocks": 1 + GROUPS[model] * (pinned_blocks + own_blocks),
        "block_size_tokens": BLOCK_SIZE,
        "prefix_caching": True,
        "swap_space_gb": draw(st.sampled_from([1.0, 0.01])),
        "watermark_share": draw(st.sampled_from([0.0, 0.2])),
        "prefix_cache": {
            "warm_up_requests": warm_up_requests,
            "pinned_tokens": pinned_tokens,
            "eviction": {"name": draw(st.sampled_from(["lru", "lfu"]))},
        },
    }
    if GROUPS[model] == 1 and model != ALL_WINDOWS and draw(st.booleans()):
        memory["tiers"] = [{"name": "cpu", "capacity_gb": draw(st.sampled_from([0.001, 1.0]))}]
    modes = ["swap", "recompute", "wait"]
    scheduler = {
        "preemption": {"mode": draw(st.sampled_from(modes))},
        "reserve_whole_prompt": draw(st.booleans()),
        "batching": {
            "name": draw(st.sampled_from(["chunked-prefill", "prefill-first", "static"])),
            "max_batched_tokens": draw(st.sampled_from([24, 200, 7])),
            "max_running_requests": draw(st.sampled_from([8, 2])),
        },
    }
    workload = synthetic(
        {"name": "poisson", "rate_per_s": draw(st.sampled_from([1000.0, 20.0]))},
        (1, draw(st.sampled_from([40, 8]))),
        (draw(st.sampled_from([20, 1])), draw(st.sampled_from([60, 20]))),
        requests=16 - draw(st.integers(1, 13)),
    )
    prefix_tokens = draw(st.sampled_from([80, 64, 33]))
    prefix = {"name": "shared", "tokens": {"name": "fixed", "tokens": prefix_tokens}, "among": among}
    return {
        "model": model,
        "seed": draw(st.integers(0, 1000)),
        "cluster": {"accelerator": "h100-sxm", "replicas": draw(st.sampled_from([1, 1, 2]))},
        "memory": memory,
        "scheduler": scheduler,
        "workload": workload | {"prefix": [prefix]},
    }


def prepared(scenario, folder):
    """The simulation, unless all memory would be pinned."""
    try:
        return prepare(scenario, folder)
    except InputError as error:
        assume("pin less than all KV blocks" not in str(error))
        raise


@settings(max_examples=150, deadline=None, derandomize=True)
@given(scenario=scenarios())
def test_whoever_could_run_alone_is_served(scenario, folder):
    simulation = prepared(scenario, folder)
    result = simulation.run(check=True)
    states = result.requests["state"].tolist()
    assert [state == "rejected" for state in states] == list(rejected_ones(simulation))
    assert set(states) <= {"finished", "rejected"}
    assert differences(result, simulation.run(fast_forward=False)) == []


def test_random_scenarios_reach_what_they_are_for(folder):
    """Some are served that fit only with pinned blocks, and some of these are preempted."""
    seen = set()

    @settings(max_examples=150, deadline=None, derandomize=True, database=None)
    @given(scenario=scenarios())
    def look(scenario):
        simulation = prepared(scenario, folder)
        plan, requests = simulation.memory, simulation.run().requests
        (batch,) = simulation.workload.batches()
        model, mode = scenario["model"], scenario["scheduler"]["preemption"]["mode"]
        for place, tokens in enumerate((batch.prompt_tokens + batch.output_tokens - 1).tolist()):
            needed = most_blocks(simulation, tokens)
            needs_pins = needed > plan.request_blocks - plan.pinned_blocks
            if requests["state"][place] == "rejected":
                seen.update([(model, "rejected"), (mode, "rejected")])
            elif needs_pins:
                served = "preempted" if requests["preemptions"][place] else "served"
                seen.update([(model, served), (mode, served)])

    look()
    # A model in which all layers slide has no pinned blocks that every request is sure to find.
    assert {(model, "served") for model in GROUPS.keys() - {ALL_WINDOWS}} <= seen
    assert {(mode, state) for mode in ("swap", "recompute") for state in ("served", "preempted", "rejected")} <= seen


@settings(max_examples=60, deadline=None, derandomize=True)
@given(scenario=scenarios(), share=st.sampled_from([0.5, 0.3, 0.7]))
def test_pins_of_tenants_with_shares_and_reserved_blocks(scenario, share, folder):
    """Each tenant has its own pinned copy of what all begin with, and levels may have blocks reserved."""
    memory = {key: value for key, value in scenario["memory"].items() if key != "tiers"}
    memory |= {
        "num_gpu_blocks": 2 * memory["num_gpu_blocks"],
        "prefix_cache": memory["prefix_cache"] | {"tenant_shares": {"gold": share}, "warm_up_requests": 3},
    }
    tenants = [{"name": "gold", "share": 0.5}, {"name": "other", "share": 0.5, "priority": 1}]
    preemption = scenario["scheduler"]["preemption"] | {"reserved_blocks": {0: 3}}
    scenario = scenario | {
        "memory": memory,
        "workload": scenario["workload"] | {"tenants": tenants},
        "scheduler": scenario["scheduler"] | {"preemption": preemption},
    }
    simulation = prepared(scenario, folder)
    result = simulation.run(check=True)
    assert set(result.requests["state"].tolist()) <= {"finished", "rejected"}
    assert differences(result, simulation.run(fast_forward=False)) == []


LONG_SYSTEM_PROMPT = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm"},
    "workload": synthetic({"name": "poisson", "rate_per_s": 4.0}, 400, (100, 300), requests=60)
    | {"prefix": [{"name": "shared", "tokens": {"name": "fixed", "tokens": 16_000}}]},
    "memory": {
        "num_gpu_blocks": 1 + 1200,
        "prefix_cache": {"warm_up_requests": 1, "pinned_tokens": 16_000},
        "swap_space_gb": 10,
    },
}


@pytest.mark.parametrize("mode", ["recompute", "swap"])
def test_a_pinned_system_prompt_of_most_of_the_memory_serves_everybody(mode, folder):
    """1,000 of 1,200 blocks are pinned; a request needs 1,032 or more, all but some 40 of them pinned."""
    scenario = merged(LONG_SYSTEM_PROMPT, {"scheduler": {"preemption": {"mode": mode}}})
    result = run(scenario, folder, check=True)
    assert result.summary["counts"]["finished"] == 60
    assert (result.requests["cached_tokens"] >= 16_000).all()
    assert result.summary["preemptions"]["total"] > 0
    # What could not come back beside the pins is computed again instead.
    assert result.summary["preemptions"]["swapped_out"] == 0
    assert differences(result, run(scenario, folder, fast_forward=False)) == []


def test_without_room_for_requests_of_another_prompt_only_these_are_turned_away(folder):
    prefix = [{"name": "shared", "tokens": {"name": "fixed", "tokens": 16_000}, "among": 2}]
    scenario = merged(LONG_SYSTEM_PROMPT, {"workload": LONG_SYSTEM_PROMPT["workload"] | {"prefix": prefix}})
    simulation = prepare(scenario, folder)
    requests = simulation.run(check=True).requests
    (batch,) = simulation.workload.batches()
    begins = np.array([content.prompt[0].first for content in batch.contents])
    assert ((requests["state"] == "finished") == (begins == begins[0])).all()
    assert 10 < (begins == begins[0]).sum() < 50


def test_pins_do_not_count_as_load(folder):
    """Admission by how full memory is sees what requests hold, not the 83% that is pinned."""
    admission = [{"name": "watermark", "low": 0.5, "high": 0.6, "critical": 0.7}]
    counts = run(merged(LONG_SYSTEM_PROMPT, {"scheduler": {"admission": admission}}), folder).summary["counts"]
    assert counts["finished"] > 20


@pytest.mark.parametrize("blocks", [1000, 700])
def test_pins_that_leave_nothing_are_refused(blocks, folder):
    expected = "pinned_tokens is 16000, expected so few that the first 1 prompts pin less than all KV blocks"
    with pytest.raises(InputError, match=expected):
        prepare(merged(LONG_SYSTEM_PROMPT, {"memory": {"num_gpu_blocks": 1 + blocks}}), folder)
