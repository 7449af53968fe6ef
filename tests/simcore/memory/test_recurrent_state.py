import json
import re
from dataclasses import replace

import pytest

from servetwin.api import prepare
from simcore.build.memory_report import memory_report
from simcore.core.errors import CapacityError, InputError
from simcore.hardware import load_accelerator
from simcore.memory.capacity import MemoryDemand
from simcore.memory.kv_bytes import KvFormat
from simcore.memory.recurrent_state import linear_attention_counts, request_state_bytes
from simcore.models import LinearAttention, load_model, load_preset
from simcore.models.config_file import read_config
from tests.simcore.models.published_models import published_model

NEXT = load_model("qwen3-next-80b-a3b")
OF_A_LAYER = 32 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2
"""32 value heads with a state of 128 x 128 in 32 bits; three earlier inputs of the convolution in 16."""


def scenario(**sections):
    return {
        "model": "qwen3-next-80b-a3b",
        "cluster": {"accelerator": "h100-sxm", "tensor_parallel": 4},
        "scheduler": {"batching": {"max_running_requests": 100}},
        "workload": {
            "requests": 10,
            "arrivals": {"name": "constant", "rate_per_s": 1},
            "prompt_tokens": {"name": "fixed", "tokens": 900},
            "output_tokens": {"name": "fixed", "tokens": 100},
        },
    } | sections


def test_three_layers_in_four_have_a_state():
    assert linear_attention_counts(NEXT) == {LinearAttention(16, 32, 128, 128): 36}
    assert request_state_bytes(NEXT) == 36 * OF_A_LAYER
    assert request_state_bytes(NEXT, ranks=4) == 36 * OF_A_LAYER // 4
    assert request_state_bytes(NEXT, layers=range(8)) == 6 * OF_A_LAYER
    assert request_state_bytes(load_model("llama-3.1-8b")) == 0


@pytest.mark.parametrize(
    ("name", "layers", "numbers", "inputs"),
    [
        # heads x head width x state; convolved: inner width and two projections of each group
        ("nemotron-h-8b", 24, 128 * 64 * 128, 128 * 64 + 2 * 8 * 128),
        ("granite-4.0-h-small", 36, 128 * 64 * 128, 128 * 64 + 2 * 128),
        ("jamba-v0.1", 28, 8192 * 16, 8192),
        ("kimi-linear-48b-a3b", 20, 32 * 128 * 128, 3 * 32 * 128),
        ("minimax-text-01", 70, 64 * 128 * 128, 0),
    ],
)
def test_states_of_other_layers(name, layers, numbers, inputs):
    assert request_state_bytes(published_model(name)) == layers * (numbers * 4 + 3 * inputs * 2)


def test_a_short_convolution_keeps_its_last_inputs_alone():
    assert request_state_bytes(published_model("lfm2-1.2b")) == 10 * 2 * 2048 * 2


def test_states_are_kept_for_all_that_may_run():
    def terms(slots):
        simulation = prepare(scenario(scheduler={"batching": {"max_running_requests": slots}}))
        report = memory_report(simulation.memory, simulation.workload, simulation.max_context_tokens)
        return report.stages[0]

    few, many = terms(1), terms(101)
    assert few["state_bytes"] == 9 * OF_A_LAYER
    assert many["state_bytes"] == 101 * few["state_bytes"]
    taken = sum(many[name] for name in ("weight_bytes", "activation_bytes", "runtime_bytes", "collective_bytes"))
    assert many["kv_bytes"] == many["usable_bytes"] - taken - many["state_bytes"]
    assert many["block_bytes"] == 12 * 16 * 2 * 256 * 2  # of the other twelve layers, one KV head a rank


def test_slots_whose_states_do_not_fit_are_named():
    expected = r"GB for states of 4,096 running requests, of which ([\d,]+) would do \(scheduler\.batching\.max_run"
    with pytest.raises(CapacityError, match=expected) as found:
        prepare(scenario(scheduler={"batching": {"max_running_requests": 4096}}))
    most = int(re.search(expected, str(found.value))[1].replace(",", ""))
    assert 500 < most < 4096
    assert prepare(scenario(scheduler={"batching": {"max_running_requests": most}})).memory.blocks >= 1


def test_a_stage_without_caches_has_to_hold_its_states_too():
    cluster = {"accelerator": "h100-sxm", "tensor_parallel": 2, "pipeline_parallel": 24}
    with pytest.raises(CapacityError, match=r"GB for states of 100,000 running requests"):
        prepare(scenario(cluster=cluster, scheduler={"batching": {"max_running_requests": 100_000}}))


def test_slots_that_would_do_are_those_of_the_tightest_stage():
    """Of 6 + 6 + 36 linear layers on three stages: none is offered that another stage has no room for."""
    config = load_preset("qwen3-next-80b-a3b").config
    full, linear = ["full_attention"], ["linear_attention"]
    types = 2 * (10 * full + 6 * linear) + 16 * linear
    spec = read_config(config | {"layer_types": types}, "uneven")
    demand = MemoryDemand(spec, "bf16", KvFormat("bf16"), 16, 8192, 4096, 0.9)
    accelerator = load_accelerator("h100-sxm")
    with pytest.raises(CapacityError, match=r"of which ([\d,]+) would do") as found:
        demand.require_fit(accelerator, 1, 3)
    most = int(re.search(r"of which ([\d,]+) would do", str(found.value))[1].replace(",", ""))
    replace(demand, max_running_requests=most).require_fit(accelerator, 1, 3)


def test_states_of_a_data_group_are_those_of_its_own_requests():
    cluster = {"accelerator": "h100-sxm", "data_parallel": 8, "expert_parallel": 8}
    expected = r"(\d+\.\d) GB for states of 1,000 of 8,000 running requests, of which ([\d,]+) would do"
    batching = {"max_running_requests": 8000}
    with pytest.raises(CapacityError, match=expected) as found:
        prepare(scenario(cluster=cluster, scheduler={"batching": batching}))
    stated_gb, most = re.search(expected, str(found.value)).groups()
    assert float(stated_gb) == pytest.approx(1000 * 36 * OF_A_LAYER / 1e9, abs=0.05)
    batching["max_running_requests"] = int(most.replace(",", ""))
    assert prepare(scenario(cluster=cluster, scheduler={"batching": batching})).memory.blocks >= 1


@pytest.mark.parametrize("split", [{"tensor_parallel": 4}, {"data_parallel": 4, "expert_parallel": 4}])
def test_fewer_states_are_offered_where_more_requests_would_then_run(split):
    def report(slots):
        workload = scenario()["workload"] | {"prompt_tokens": {"name": "fixed", "tokens": 30_000}}
        cluster = {"accelerator": "h200-sxm"} | split
        batching = {"max_running_requests": slots}
        simulation = prepare(scenario(cluster=cluster, scheduler={"batching": batching}, workload=workload))
        return memory_report(simulation.memory, simulation.workload, simulation.max_context_tokens)

    many = report(3600)
    offered = {line["set"]: line["requests"] for line in many.help}
    (most,) = (requests for setting, requests in offered.items() if "max_running_requests" in setting)
    assert offered[f"scheduler.batching.max_running_requests={most}"] == most > many.limit["requests"]
    assert report(most).limit["requests"] == most
    assert report(most + 4).limit["requests"] <= most


def test_given_blocks_need_room_beside_states():
    batching = {"max_running_requests": 10_000}
    needed = r"GB of weights and 193\.2 GB for states of 10,000 running requests needs \d+\.\d GB of each h100-sxm"
    with pytest.raises(CapacityError, match=rf"^memory\.num_gpu_blocks is 9, which with .* {needed}"):
        prepare(scenario(memory={"num_gpu_blocks": 9}, scheduler={"batching": batching}))


def test_ranks_have_whole_heads_in_every_layer(tmp_path):
    """16 query heads and 12 key heads: neither 3 nor 8 ranks could share both."""
    heads = {"linear_num_key_heads": 12, "linear_num_value_heads": 24}
    (tmp_path / "config.json").write_text(json.dumps(load_preset("qwen3-next-80b-a3b").config | heads))

    def split(ranks):
        cluster = {"accelerator": "h200-sxm", "tensor_parallel": ranks}
        return prepare(scenario(model=str(tmp_path), cluster=cluster))

    with pytest.raises(InputError, match=r"^cluster\.tensor_parallel is 3, expected a divisor of the 16 query heads"):
        split(3)
    with pytest.raises(InputError, match=r"is 8, expected a divisor of the 12 key heads of linear attention"):
        split(8)
    assert split(4).memory.ranks == 4


@pytest.mark.parametrize(
    ("sections", "field"),
    [
        ({"memory": {"prefix_caching": True, "tiers": [{"name": "cpu", "capacity_gb": 1}]}}, "memory.tiers"),
        ({"scheduler": {"preemption": {"mode": "swap"}}}, "scheduler.preemption.mode"),
        (
            {"cluster": {"accelerator": "h100-sxm", "tensor_parallel": 4, "context_parallel": 2}},
            "cluster.context_parallel",
        ),
    ],
)
def test_what_would_move_or_divide_states_is_refused(sections, field):
    with pytest.raises(InputError, match=rf"^{field} is .* since qwen3-next-80b-a3b has .* whose states"):
        prepare(scenario(**sections))


@pytest.mark.parametrize("cache", [{}, {"index": "radix"}, {"eviction": {"name": "lfu"}}])
def test_a_preempted_request_computes_all_of_it_again(cache):
    """Its blocks may still be there, its states are not."""
    workload = scenario()["workload"] | {"arrivals": {"name": "constant", "rate_per_s": 1e6}}

    def prefilled(**memory):
        section = {"num_gpu_blocks": 180} | memory
        result = prepare(scenario(memory=section, workload=workload)).run(check=True)
        assert result.summary["preemptions"]["total"] > 0
        return result.summary["utilisation"]["prefill_tokens"]

    assert prefilled(prefix_caching=True, prefix_cache=cache) == prefilled(prefix_caching=False) > 10 * 900
