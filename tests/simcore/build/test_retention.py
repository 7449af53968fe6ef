"""Engines that keep part of each request, in memory and in the price of a step."""

import pytest

import servetwin
from servetwin.api import prepare
from simcore.core.errors import InputError
from tests.e2e.scenarios import differences


def scenario(model="llama-3.1-8b", rate_per_s=20, **retention):
    return {
        "model": model,
        "cluster": {"accelerator": "h100-sxm"},
        "workload": {
            "requests": 30,
            "arrivals": {"name": "poisson", "rate_per_s": rate_per_s},
            "prompt_tokens": {"name": "fixed", "tokens": 6000},
            "output_tokens": {"name": "fixed", "tokens": 600},
        },
        "memory": {"num_gpu_blocks": 3000, "retention": retention},
    }


@pytest.mark.parametrize(
    ("retention", "kept_tokens"),
    [
        ({"window_tokens": 1000}, 1016),
        ({"window_tokens": 1000, "sink_tokens": 17}, 1032),
        ({"window_tokens": 1000, "sink_tokens": 0}, 1000),
        ({"budget_tokens": 512}, 512),
    ],
)
def test_every_layer_keeps_a_window(retention, kept_tokens):
    simulation = prepare(scenario(**retention))
    assert {group.attention.window_tokens for group in simulation.spec.layer_groups} == {kept_tokens}
    # Between two steps: the window, and what is left of the block at its far end.
    blocks = simulation.memory.layout.blocks_held(6000, 6000)
    assert kept_tokens / 16 - 1 <= blocks <= kept_tokens / 16 + 1


def test_a_smaller_window_of_the_model_stays():
    groups = prepare(scenario("gpt-oss-20b", budget_tokens=512)).spec.layer_groups
    assert {group.attention.window_tokens for group in groups} == {128, 512}


def test_less_memory_and_less_time_and_exact_all_the_same():
    everything, part = (servetwin.simulate(scenario(rate_per_s=0.1, **kept)) for kept in ({}, {"window_tokens": 1000}))
    assert part.summary["kv"]["peak_used_blocks"] < everything.summary["kv"]["peak_used_blocks"]
    assert part.summary["metrics"]["tpot_s"]["mean"] < everything.summary["metrics"]["tpot_s"]["mean"]
    simulation = prepare(scenario(window_tokens=1000))
    stepping = simulation.run(fast_forward=False, check=True)
    assert differences(simulation.run(check=True), stepping) == []


@pytest.mark.parametrize("beside", [{}, {"budget_tokens": 512}])
def test_sinks_without_a_window_are_refused(beside):
    with pytest.raises(InputError, match="sink_tokens is 8, expected nothing without window_tokens"):
        prepare(scenario(sink_tokens=8, **beside))


def test_a_retention_comes_back_as_it_was_written():
    for retention in ({"window_tokens": 1000}, {"window_tokens": 1000, "sink_tokens": 0}, {"budget_tokens": 9}, {}):
        first = prepare(scenario(**retention))
        again = prepare(first.scenario.document())
        assert again.scenario == first.scenario
        assert again.spec == first.spec


def test_a_window_and_a_budget_together_are_refused():
    with pytest.raises(InputError, match="budget_tokens is 5, expected nothing beside window_tokens"):
        prepare(scenario(window_tokens=5, budget_tokens=5))
