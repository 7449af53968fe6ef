"""The memory of a scenario: its blocks, the requests that fit, and what users are told."""

import numpy as np
import pytest

import servetwin
from servetwin.api import prepare
from simcore.build.memory_plan import MemoryPlan
from simcore.build.memory_report import memory_report, request_lengths
from simcore.core.errors import InputError


def scenario(model="llama-3.1-8b", **sections):
    return {
        "model": model,
        "cluster": {"accelerator": "h100-sxm"},
        "workload": {
            "requests": 10,
            "arrivals": {"name": "constant", "rate_per_s": 1},
            "prompt_tokens": {"name": "fixed", "tokens": 900},
            "output_tokens": {"name": "fixed", "tokens": 100},
        },
    } | sections


LIMITS = {"batching": {"max_batched_tokens": 8192, "max_running_requests": 256}}
"""Of all data groups together."""


def report(document):
    simulation = prepare(document)
    return memory_report(simulation.memory, simulation.workload, simulation.max_context_tokens)


def kept_blocks(document):
    """The memory if a radix tree kept what requests share, so that windows release nothing."""
    radix = {"prefix_caching": True, "prefix_cache": {"index": "radix"}}
    simulation = prepare(document | {"memory": document.get("memory", {}) | radix})
    return MemoryPlan.of(simulation.scenario, simulation.spec, simulation.accelerator, shares_content=True)


def test_the_report_adds_up():
    found = report(scenario())
    (terms,) = found.stages
    spent = sum(terms[name] for name in ("weight_bytes", "activation_bytes", "runtime_bytes", "collective_bytes"))
    assert terms["usable_bytes"] - spent == terms["kv_bytes"]
    assert terms["kv_bytes"] // terms["block_bytes"] == terms["blocks"] == found.kv["blocks"]
    assert found.kv["tokens"] == 16 * (found.kv["blocks"] - 1)
    mean = found.requests["mean"]
    assert (mean["tokens"], mean["blocks"], mean["fit"]) == (1000, 63, found.kv["request_blocks"] / 63)
    assert found.requests["context"]["tokens"] == 131_072
    assert found.notices == ()


def test_given_blocks_are_shown_as_such():
    found = report(scenario(memory={"num_gpu_blocks": 1000}))
    assert (found.kv["source"], found.kv["blocks"], found.kv["request_blocks"]) == ("given", 1000, 999)
    assert found.kv["computed_blocks"] == report(scenario()).kv["blocks"]
    assert found.limit == {"requests": 15, "by": "memory.num_gpu_blocks"}
    assert [offer["set"] for offer in found.help] == ["memory.num_gpu_blocks=null"]


@pytest.mark.parametrize(("model", "most"), [("llama-3.1-8b", 32), ("gemma-3-27b", 52), ("gpt-oss-20b", 12)])
def test_no_more_layers_share_a_cache_than_there_are(model, most):
    prepare(scenario(model, memory={"kv_sharing_layers": most}))
    expected = f"kv_sharing_layers is {most + 1}, expected at most {most}, the most layers of one kind that {model} has"
    with pytest.raises(InputError, match=expected):
        prepare(scenario(model, memory={"kv_sharing_layers": most + 1}))


def test_slots_bound_short_requests():
    found = report(scenario())
    assert found.limit == {"requests": 256, "by": "scheduler.batching.max_running_requests"}
    (offer,) = found.help
    # 443 would fit beside logits of 256, 442 do beside their own.
    assert offer == {"set": "scheduler.batching.max_running_requests=442", "requests": 442}
    assert report(prepared(scenario(), offer)).limit["requests"] == 442


def prepared(document, offer):
    return prepare(document, [offer["set"]]).scenario.document()


@pytest.mark.parametrize(
    ("model", "cluster", "offers"),
    [
        ("llama-2-70b", {"tensor_parallel": 2}, 4),
        ("llama-3.1-70b", {"tensor_parallel": 2, "context_parallel": 2}, 4),
        ("llama-3.1-70b", {"pipeline_parallel": 2}, 4),
        # Twice the tensor-parallel ranks alone would leave experts without a rank.
        ("qwen3-235b-a22b", {"data_parallel": 8, "expert_parallel": 8}, 3),
    ],
)
def test_every_offer_does_what_it_says(model, cluster, offers):
    tight = scenario(model, cluster={"accelerator": "h100-sxm", **cluster}, scheduler=LIMITS)
    found = report(tight)
    assert found.limit["by"] == "KV memory"
    assert len(found.help) == offers
    for offer in found.help:
        simulation = prepare(tight, [offer["set"]])
        slots = simulation.memory.demand.max_running_requests
        assert offer["requests"] == min(int(simulation.memory.requests_that_fit(1000)), slots) > found.limit["requests"]


def test_blocks_that_are_given_are_those_of_each_group():
    experts = {"accelerator": "h100-sxm", "data_parallel": 8, "expert_parallel": 8}
    document = scenario("qwen3-235b-a22b", cluster=experts, memory={"num_gpu_blocks": 100}, scheduler=LIMITS)
    (offer,) = report(document).help
    assert report(prepared(document, offer)).limit["requests"] == offer["requests"]


def test_no_request_has_more_than_the_blocks_of_its_data_group():
    """Two groups of 99 blocks: 1,600 tokens need 100, which both together would have."""
    experts = {"accelerator": "h100-sxm", "data_parallel": 2, "expert_parallel": 2}
    document = scenario("qwen3-30b-a3b", cluster=experts, memory={"num_gpu_blocks": 100})
    document["workload"] |= {"prompt_tokens": {"name": "quantiles", "tokens": {"min": 1470, "max": 1490}}}
    found = report(document | {"max_context_tokens": 1590})
    assert found.kv["request_blocks"] == 198
    assert (found.requests["mean"]["fit"], found.requests["context"]["fit"]) == (2.0, 0.0)
    result = servetwin.simulate(document)
    too_large = result.requests["prompt_tokens"] + 99 > 99 * 16
    assert 0 < too_large.sum() < 10
    assert ((result.requests["state"] == "rejected") == too_large).all()
    reasons = result.summary["counts"]["rejected_by_reason"]
    assert reasons == {"needs more KV blocks than a data-parallel group has": too_large.sum()}


def test_no_request_has_blocks_of_two_tenants():
    """Of 198 blocks gold has 59 and 139 are for others: 63 for 1,000 tokens fit only there, 140 for 2,240 nowhere."""
    tenants = [{"name": name, "share": 0.5} for name in ("gold", "other")]
    workload = scenario()["workload"] | {"tenants": tenants}
    memory = {"num_gpu_blocks": 199, "prefix_cache": {"tenant_shares": {"gold": 0.3}}}
    document = scenario(workload=workload, memory=memory, max_context_tokens=2240)
    found = report(document)
    assert (found.kv["tenant_blocks"], found.kv["other_blocks"]) == ({"gold": 59}, 139)
    assert found.requests["mean"]["fit"] == 139 / 63
    assert found.requests["context"]["fit"] == 0
    requests = servetwin.simulate(document).requests
    assert 0 < (requests["tenant"] == "gold").sum() < 10
    assert ((requests["state"] == "rejected") == (requests["tenant"] == "gold")).all()


def test_what_requests_reserve_is_what_fits():
    """By limit a prompt and its longest output; without a limit, as by longest, the longest context."""
    workload = scenario()["workload"] | {"max_output_tokens": 700}
    for reservation, stated, tokens, blocks in (
        ("limit", workload, 900 + 700 - 1, 100),
        ("limit", scenario()["workload"], 8000 - 1, 500),
        ("longest", workload, 8000, 500),
    ):
        memory = {"prefix_caching": False, "reservation": reservation}
        document = scenario(workload=stated, memory=memory, max_context_tokens=8000)
        found = report(document)
        mean = found.requests["mean"]
        assert (mean["tokens"], mean["reserved_tokens"], mean["blocks"]) == (1000, tokens, blocks)
        assert mean["fit"] == found.kv["request_blocks"] / blocks
        assert found.requests["context"]["blocks"] == 500


def test_no_more_run_than_the_report_says_where_memory_is_reserved():
    workload = scenario()["workload"] | {"arrivals": {"name": "constant", "rate_per_s": 1000}}
    document = scenario(workload=workload, memory={"prefix_caching": False, "reservation": "longest"})
    found = report(document)
    assert found.limit == {"requests": 3, "by": "KV memory"}
    assert servetwin.simulate(document).steps["running_requests"].max() == 3


def crowd(memory=None, preemption=None, tenants=(), **sections):
    """So many requests at once that memory alone bounds how many run: 57 blocks each from admission to the end."""
    workload = scenario()["workload"] | {
        "requests": 40,
        "arrivals": {"name": "constant", "rate_per_s": 1000},
        "output_tokens": {"name": "fixed", "tokens": 12},
    }
    if tenants:
        workload["tenants"] = list(tenants)
    return scenario(
        workload=workload,
        memory={"num_gpu_blocks": 801, "prefix_caching": False, **(memory or {})},
        scheduler={"ordering": "priority", "preemption": preemption or {}},
        **sections,
    )


@pytest.mark.parametrize("reservation", ["none", "longest"])
@pytest.mark.parametrize(("share", "watermark", "most"), [(0.0, 0, 14), (0.1, 80, 12), (0.3, 240, 9), (0.95, 760, 1)])
def test_as_many_run_as_the_report_says_beside_a_watermark(reservation, share, watermark, most):
    """Of 800 blocks; whoever finds nobody running is let in whatever the watermark."""
    memory = {"watermark_share": share, "reservation": reservation}
    document = crowd(memory, max_context_tokens=912)
    found = report(document)
    assert (found.kv["watermark_blocks"], found.limit["requests"]) == (watermark, most)
    assert found.requests["mean"]["fit"] == max(800 - watermark, 57) / 57
    assert servetwin.simulate(document).steps["running_requests"].max() == most
    offers = [offer for offer in found.help if offer["set"] == "memory.watermark_share=0"]
    assert offers == ([{"set": "memory.watermark_share=0", "requests": 14}] if share else [])
    for offer in offers:
        assert report(prepared(document, offer)).limit["requests"] == offer["requests"]


def test_tenants_with_blocks_of_their_own_each_keep_the_whole_watermark_free():
    """Gold's 200 blocks are too few beside that for any but a request that finds nobody running at all."""
    tenants = [{"name": name, "share": 0.5, "priority": level} for level, name in enumerate(("other", "gold"))]
    document = crowd({"watermark_share": 0.2, "prefix_cache": {"tenant_shares": {"gold": 0.25}}}, tenants=tenants)
    assert report(document).requests["mean"]["fit"] == (57 + 600 - 160) / 57
    assert servetwin.simulate(document).steps["running_requests"].max() == 1 + 7


@pytest.mark.parametrize(("levels", "urgent", "patient"), [((0, 1), 14, 10), ((1,), 10, None), ((0,), 14, None)])
def test_blocks_reserved_for_urgent_requests_are_no_room_for_others(levels, urgent, patient):
    tenants = [{"name": f"level-{level}", "share": 1 / len(levels), "priority": level} for level in levels]
    document = crowd(preemption={"reserved_blocks": {0: 200}}, tenants=tenants)
    found = report(document)
    assert found.kv["kept_blocks"] == ({1: 200} if 1 in levels else {})
    assert (found.limit["requests"], found.limit.get("requests_if_least_urgent")) == (urgent, patient)
    assert found.requests["mean"].get("fit_if_least_urgent") == (None if patient is None else 600 / 57)
    result = servetwin.simulate(document)
    assert result.steps["running_requests"].max() == urgent
    for offer in found.help:
        if "reserved_blocks" in offer["set"]:
            assert report(prepared(document, offer)).limit["requests"] == offer["requests"] == 14
    assert any("reserved_blocks" in offer["set"] for offer in found.help) == (levels == (1,))


def test_requests_too_long_to_be_served_are_not_counted():
    simulation = prepare(scenario(max_context_tokens=999))
    assert len(request_lengths(simulation.workload, simulation.max_context_tokens)) == 0
    found = report(scenario(max_context_tokens=999))
    assert list(found.requests) == ["context"]


def test_a_closed_loop_has_lengths_too():
    workload = scenario()["workload"] | {"arrivals": {"name": "closed-loop", "concurrency": 2}}
    simulation = prepare(scenario(workload=workload))
    assert request_lengths(simulation.workload, 5000).tolist() == [1000] * 10


def of_capacity(notices):
    """Those on blocks that are not released; a model may have notices of its own."""
    return [notice for notice in notices if "KV capacity" in notice]


@pytest.mark.parametrize(
    ("model", "tokens", "said"),
    [
        # Twelve layers of 24 slide over 128 tokens: blocks of half the size, 63 of full layers and 9 of sliding ones.
        (
            "gpt-oss-20b",
            1000,
            f"understated by a factor of {2 * 63 / (63 + 9):.2f} at the mean request of 1,000 tokens",
        ),
        ("gpt-oss-20b", 100, "understated but by less than 0.5%"),
        ("mistral-7b", 8000, f"understated by a factor of {500 / 257:.2f}"),
        # Seven groups of 10 layers, two to six of them empty, where the simulator has blocks of 62.
        ("gemma-3-27b", 500, "overstated by a factor of 1.13"),
    ],
)
def test_the_notice_says_by_how_much(model, tokens, said):
    assert of_capacity(prepare(scenario(model)).memory.notices(np.array([tokens]))) == []
    (notice,) = of_capacity(kept_blocks(scenario(model)).notices(np.array([tokens])))
    assert f"KV capacity is {said}" in notice
    assert "since a radix tree keeps all blocks of a prefix" in notice


def test_given_blocks_of_a_model_with_windows_are_explained():
    (notice,) = kept_blocks(scenario("gpt-oss-20b", memory={"num_gpu_blocks": 900})).notices(np.array([1000]))
    assert "memory.num_gpu_blocks counts blocks of all layers, an engine's log blocks of one group" in notice


def test_a_run_carries_the_notice():
    shared = {"name": "shared", "tokens": {"name": "fixed", "tokens": 7000}}
    workload = scenario()["workload"] | {"prompt_tokens": {"name": "fixed", "tokens": 900}, "prefix": [shared]}
    document = scenario("gemma-3-27b", workload=workload)
    assert of_capacity(servetwin.simulate(document).summary["notices"]) == []
    tier = {"name": "cpu", "capacity_gb": 10}
    document["memory"] = {"prefix_caching": True, "tiers": [tier]}
    (notice,) = of_capacity(servetwin.simulate(document).summary["notices"])
    assert "since tiers below GPU memory take blocks of all layers" in notice
    assert "KV capacity is understated by a factor of 3.51" in notice
    assert "mean request of 8,000 tokens" in notice
    assert servetwin.simulate(scenario()).summary["notices"] == []


def test_scales_of_plain_numbers_are_refused():
    with pytest.raises(InputError, match=r"precision.kv_scales is 'token', expected auto or tensor, since bf16"):
        prepare(scenario(precision={"kv_scales": "token"}))


@pytest.mark.parametrize(
    ("kv_cache", "kv_scales", "bytes_per_token"),
    [("int8", "auto", 67_584), ("int8", "tensor", 65_536), ("int4", "auto", 40_960)],
)
def test_a_quantised_cache_is_smaller_and_quicker_to_read(kv_cache, kv_scales, bytes_per_token):
    workload = scenario()["workload"] | {"requests": 1, "prompt_tokens": {"name": "fixed", "tokens": 60_000}}
    precision = {"kv_cache": kv_cache, "kv_scales": kv_scales}
    plain, small = (
        servetwin.simulate(scenario(workload=workload, **changes)).summary for changes in ({}, {"precision": precision})
    )
    assert small["kv"]["bytes_per_token"] == bytes_per_token
    assert small["kv"]["blocks_per_replica"] > plain["kv"]["blocks_per_replica"]
    assert small["metrics"]["tpot_s"]["mean"] < plain["metrics"]["tpot_s"]["mean"]


def test_layers_that_share_a_cache_in_a_scenario():
    shared = prepare(scenario(memory={"kv_sharing_layers": 2}))
    assert shared.memory.decisive.block_bytes * 2 == prepare(scenario()).memory.decisive.block_bytes


def test_more_blocks_kept_aside_than_there_are():
    with pytest.raises(InputError, match=r"null_blocks is 1000000, expected less than the 27,968 that memory has room"):
        prepare(scenario(memory={"null_blocks": 10**6}))
