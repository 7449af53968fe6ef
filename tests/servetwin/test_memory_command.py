"""``servetwin memory``, as typed."""

import json

import pytest


def test_the_table_has_every_term(command, scenario_file):
    ended = command("memory", scenario_file)
    assert (ended.code, ended.err) == (0, "")
    terms = ("memory of the device", "of which usable", "weights", "activations", "context and graphs", "left for KV")
    for said in (*terms, "buffers of collectives", "(computed), 1 kept aside", "the workload's P99", "bounded by"):
        assert said in ended.out
    assert "windows" not in ended.out


def test_json_has_the_same_figures(command, scenario_file):
    found = json.loads(command("memory", scenario_file, "--json").out)
    assert (found["model"], found["accelerator"], found["tensor_parallel"]) == ("smollm2-135m", "l4", 1)
    assert f"{found['kv']['request_blocks']:,} for requests" in command("memory", scenario_file).out
    (stage,) = found["stages"]
    assert f"{stage['kv_bytes']:,}" in command("memory", scenario_file).out


def test_given_blocks_are_said_to_be_given(command, scenario_file):
    ended = command("memory", scenario_file, "--set", "memory.num_gpu_blocks=500")
    assert "blocks: 500 (given by memory.num_gpu_blocks; " in ended.out
    assert "499 for requests: 7,984 tokens" in ended.out


def test_windows_are_shown_and_told_of(command, scenario_file):
    windows = ("--set", "model=gpt-oss-20b", "--set", "cluster.accelerator=h100-sxm")
    ended = command("memory", scenario_file, *windows)
    assert "12 sliding (128), 12 full" in ended.out
    assert "fit with windows released" not in ended.out
    ended = command("memory", scenario_file, *windows, "--set", "memory.prefix_cache.eviction=lfu")
    assert "windows released" not in ended.out
    ended = command("memory", scenario_file, *windows, "--set", "memory.prefix_cache.index=radix")
    assert "fit with windows released" in ended.out
    assert "Notice: KV capacity is understated" in ended.out


def test_pinned_blocks_are_no_room_but_what_begins_with_them_fits_more(command, scenario_file):
    prefix = "workload.prefix=[{name: shared, tokens: {name: fixed, tokens: 1600}}]"
    pins = [f"memory.{key}" for key in ("prefix_cache.warm_up_requests=1", "prefix_cache.pinned_tokens=1600")]
    settings = [part for setting in (prefix, *pins, "memory.num_gpu_blocks=501") for part in ("--set", setting)]
    ended = command("memory", scenario_file, *settings)
    assert "500 for requests" in ended.out
    assert "of these 100 are pinned" in ended.out
    assert "fit with pinned beginning" in ended.out
    found = json.loads(command("memory", scenario_file, *settings, "--json").out)
    assert found["kv"]["pinned_blocks"] == 100
    mean = found["requests"]["mean"]
    assert mean["fit"] == 400 / mean["blocks"]
    assert mean["fit_if_prefix_pinned"] == 400 / (mean["blocks"] - 100)
    assert found["limit"]["requests_if_prefix_pinned"] == int(mean["fit_if_prefix_pinned"])


def test_tenants_with_shares_are_told_their_blocks(command, scenario_file):
    tenants = "workload.tenants=[{name: gold, share: 0.5}, {name: other, share: 0.5}]"
    settings = (tenants, "memory.prefix_cache.tenant_shares={gold: 0.25}", "memory.num_gpu_blocks=401")
    ended = command("memory", scenario_file, *(part for setting in settings for part in ("--set", setting)))
    assert "of these 100 only for gold, 300 for all others; no request has blocks of two" in ended.out


def test_blocks_that_admission_leaves_free_are_told_of(command, scenario_file):
    tenants = "workload.tenants=[{name: chat, share: 0.5}, {name: batch, share: 0.5, priority: 1}]"
    kept = ("memory.watermark_share=0.1", "scheduler.preemption.reserved_blocks={0: 50}")
    settings = (tenants, "memory.num_gpu_blocks=401", *kept)
    ended = command("memory", scenario_file, *(part for setting in settings for part in ("--set", setting)))
    for said in (
        "of these 40 stay free when a request is admitted beside others (memory.watermark_share)",
        "of these no request is admitted into 50 if of level 1 (scheduler.preemption.reserved_blocks)",
        "fit if least urgent",
        "if all of them are of the least urgent level",
        "memory.watermark_share=0 would let",
    ):
        assert said in ended.out
    assert "admitted" not in command("memory", scenario_file).out


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("model=llama-3.1-70b", "llama-3.1-70b does not fit 1 l4: it needs"),
        ("memory.num_gpu_blocks=1", "memory.num_gpu_blocks is 1, expected more than the 1 that the engine keeps aside"),
        ("precision.kv_cache=int5", "precision.kv_cache is 'int5', expected "),
        ("precision.kv_scales=token", "precision.kv_scales is 'token', expected auto or tensor, since bf16"),
        ("memory.kv_sharing_layers=0", "memory.kv_sharing_layers is 0, expected "),
    ],
)
def test_errors_are_those_of_run(command, scenario_file, setting, said):
    ended = command("memory", scenario_file, "--set", setting)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"servetwin: {said}")
    assert command("run", scenario_file, "--json", "--set", setting).err == ended.err
