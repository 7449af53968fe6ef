"""Pools in scenarios: what they take from where, and what is wrong with them."""

import pytest

from simcore.core.errors import InputError
from simcore.scenario import override, parse_scenario
from simcore.scenario.pools import pool_scenarios

WORKLOAD = {
    "requests": 1,
    "arrivals": {"name": "at-once"},
    "prompt_tokens": {"name": "fixed", "tokens": 1},
    "output_tokens": {"name": "fixed", "tokens": 1},
}

TINY = {"max_batched_tokens": 9}


def document(*pools, **cluster):
    return {"model": "llama-3.1-8b", "workload": WORKLOAD, "cluster": {"pools": list(pools), **cluster}}


def pool(name="a", accelerator="h100-sxm", **more):
    return {"name": name, "accelerator": accelerator, **more}


def test_devices_beside_pools_are_those_of_pools_that_state_none():
    found = pool_scenarios(
        parse_scenario(document({"name": "a"}, pool("b", "l4", replicas=1), accelerator="h200-sxm", replicas=3))
    )
    assert [(each.cluster.accelerator, each.cluster.replicas) for each in found] == [("h200-sxm", 3), ("l4", 1)]


def test_a_pool_takes_its_section_before_the_scenarios_and_that_before_its_preset():
    stated = document(
        pool("a"),
        pool("b", engine="sglang"),
        pool(
            "c", memory={"block_size_tokens": 8}, scheduler={"ordering": "sjf", "batching": {"max_batched_tokens": 9}}
        ),
    ) | {"memory": {"gpu_memory_utilization": 0.5}}
    first, second, third = pool_scenarios(parse_scenario(stated))
    assert [each.memory.block_size_tokens for each in (first, second, third)] == [16, 1, 8]
    assert {each.memory.gpu_memory_utilization for each in (first, second, third)} == {0.5}
    assert [each.engine for each in (first, second, third)] == ["vllm-v1", "sglang", "vllm-v1"]
    assert third.scheduler.ordering["name"] == "sjf"
    assert third.scheduler.batching["max_batched_tokens"] == 9
    assert third.scheduler.batching["max_running_requests"] == first.scheduler.batching["max_running_requests"]


def test_the_document_in_full_says_the_same_again():
    stated = document(pool("a", tensor_parallel=2), pool("b", engine="sglang", scheduler={"ordering": "sjf"}))
    once = parse_scenario(stated).document()
    assert parse_scenario(once).document() == once
    assert "accelerator" not in once["cluster"]
    assert "memory" not in once["cluster"]["pools"][0]


def test_limits_of_data_parallel_ranks_are_those_of_the_pool():
    stated = document(pool("a"), pool("b", data_parallel=2, expert_parallel=2)) | {"model": "qwen3-30b-a3b"}
    first, second = pool_scenarios(parse_scenario(stated))
    limits = [each.scheduler.batching["max_batched_tokens"] for each in (first, second)]
    assert limits[1] == 2 * limits[0]


def test_without_pools_the_scenario_stands_for_itself():
    scenario = parse_scenario(document() | {"cluster": {"accelerator": "l4"}})
    assert pool_scenarios(scenario) == (scenario,)
    assert "pools" not in scenario.document()["cluster"]


@pytest.mark.parametrize(
    ("pools", "message"),
    [
        ([{"name": "a"}], "cluster.accelerator is missing, expected text that is not empty."),
        ([pool(acc=1)], "cluster.pools.0.acc is an unknown field"),
        ([pool(), pool()], "expected pools of different names, not a, a."),
        ([pool(), pool("b", replicas=0)], "cluster.pools.1.replicas is 0, expected a whole number of at least 1"),
        ([pool(), pool("b", engine="vlm")], "cluster.pools.1.engine is 'vlm', expected one of"),
        ([pool(scheduler={"ordering": "sfj"})], "cluster.pools.0.scheduler.ordering.name is 'sfj', expected one of"),
        ([pool(scheduler={"admission": ["queue-limit"]})], "expected no admission of a pool's own"),
    ],
)
def test_what_is_wrong_is_told_where_the_pool_states_it(pools, message):
    with pytest.raises(InputError) as caught:
        parse_scenario(document(*pools))
    assert message in str(caught.value)


def test_one_value_of_a_pool_can_be_set():
    assert override(document(pool(), pool("b")), ["cluster.pools.1.replicas=7"])["cluster"]["pools"][1]["replicas"] == 7
