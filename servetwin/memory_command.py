"""``servetwin memory``: where the memory of a scenario's accelerators goes, and how many requests fit."""

import json
from collections.abc import Iterator
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from servetwin.api import prepare
from servetwin.console import console, plain_table
from servetwin.options import AsJson, Overrides, Pool, Scenario
from simcore.build.memory_report import MemoryReport, memory_report
from simcore.build.simulation import Simulation
from simcore.output.cluster_text import replicas_of

_TERMS = {
    "device_bytes": "memory of the device",
    "usable_bytes": "of which usable",
    "weight_bytes": "weights",
    "activation_bytes": "activations",
    "runtime_bytes": "context and graphs",
    "collective_bytes": "buffers of collectives",
    "state_bytes": "states of linear attention",
    "kv_bytes": "left for KV blocks",
}
_LENGTHS = {"mean": "the workload's mean", "p99": "the workload's P99", "context": "the longest served"}
_COUNTS = {"tokens": "tokens", "reserved_tokens": "reserved", "blocks": "blocks"}
_ALSO_FIT = {
    "fit_if_least_urgent": "fit if least urgent",
    "fit_if_prefix_pinned": "fit with pinned beginning",
    "fit_if_windows_released": "fit with windows released",
}


def memory(
    scenario: Scenario,
    set_: Overrides = None,
    pool: Pool = None,
    as_json: AsJson = False,
) -> None:
    """Show where memory goes and how many requests fit.

    Nothing is simulated; errors are those of run.
    """
    simulation = prepare(scenario, set_ or ())
    simulation = simulation.of_pool(simulation.pools[0].name if pool is None else pool)
    report = memory_report(simulation.memory, simulation.workload, simulation.max_context_tokens)
    if as_json:
        typer.echo(json.dumps(_facts(simulation) | report.document(), indent=2))
    else:
        print_memory(simulation, report, console())


def print_memory(simulation: Simulation, report: MemoryReport, output: Console) -> None:
    """Print the terms, the blocks, and the requests that fit."""
    facts = _facts(simulation)
    devices = replicas_of(facts)
    output.print(f"[bold]{escape(facts['model'])}[/] on [bold]{escape(devices)}[/]; figures are of one accelerator")
    terms = plain_table("", "bytes", "GiB", "share")
    for number, stage in enumerate(report.stages):
        if len(report.stages) > 1:
            terms.add_row(f"stage {number}", "", "", "")
        for name, title in _TERMS.items():
            if name == "state_bytes" and not stage[name]:
                continue
            share = stage[name] / stage["device_bytes"]
            terms.add_row(title, f"{stage[name]:,}", f"{stage[name] / 2**30:.2f}", f"{share:.1%}")
        if len(report.stages) > 1 and stage["blocks"] is not None:
            terms.add_row("KV blocks that fit", f"{stage['blocks']:,}", "", "")
    output.print(terms)
    for line in _blocks(report.kv):
        output.print(line, soft_wrap=True)
    output.print(_requests(report.requests))
    for line in _advice(report):
        output.print(escape(line), soft_wrap=True)


def _facts(simulation: Simulation) -> dict[str, Any]:
    cluster = simulation.scenario.cluster
    return {
        "model": simulation.spec.name,
        "accelerator": simulation.accelerator.name,
        "replicas": cluster.replicas,
        "tensor_parallel": cluster.tensor_parallel,
        "pipeline_parallel": cluster.pipeline_parallel,
        "data_parallel": cluster.data_parallel,
        "expert_parallel": cluster.expert_parallel,
        "context_parallel": cluster.context_parallel,
        "weight_dtype": simulation.memory.demand.weight_dtype,
    }


def _blocks(kv: dict[str, Any]) -> Iterator[str]:
    scales = "" if kv["scales"] == "tensor" else f", scales by {kv['scales']}"
    yield (
        f"KV cache in {kv['dtype']}{scales}: {kv['bytes_per_token']:,} bytes per token, of which "
        f"{kv['bytes_per_token_and_rank']:,} on each rank"
    )
    yield f"a block of {kv['block_size_tokens']} tokens takes {kv['block_bytes']:,} bytes"
    source = "computed"
    if kv["source"] == "given":
        source = f"given by memory.num_gpu_blocks; {kv['computed_blocks']:,} were computed"
    yield (
        f"blocks: {kv['blocks']:,} ({source}), {kv['null_blocks']} kept aside, "
        f"{kv['request_blocks']:,} for requests: {kv['tokens']:,} tokens"
    )
    if kv["tenant_blocks"]:
        parts = [f"{blocks:,} only for {tenant}" for tenant, blocks in kv["tenant_blocks"].items()]
        yield escape(
            f"of these {', '.join(parts)}, {kv['other_blocks']:,} for all others; no request has blocks of two"
        )
    if kv["pinned_blocks"]:
        yield f"of these {kv['pinned_blocks']:,} are pinned: they hold the beginnings of prompts for good"
    if kv["watermark_blocks"]:
        kept = f"{kv['watermark_blocks']:,} stay free when a request is admitted beside others"
        yield f"of these {kept} (memory.watermark_share)"
    if kv["kept_blocks"]:
        kept = ", ".join(f"{blocks:,} if of level {level}" for level, blocks in kv["kept_blocks"].items())
        yield f"of these no request is admitted into {kept} (scheduler.preemption.reserved_blocks)"


def _requests(requests: dict[str, dict[str, Any]]) -> Any:
    extra = {key: title for key, title in _ALSO_FIT.items() if all(key in row for row in requests.values())}
    counts = [key for key in _COUNTS if all(key in row for row in requests.values())]
    table = plain_table("requests of", *(_COUNTS[key] for key in counts), "fit", *extra.values())
    for name, row in requests.items():
        figures = [*(f"{row[key]:,}" for key in counts), f"{row['fit']:,.2f}"]
        figures += [f"{row[key]:,.2f}" for key in extra]
        table.add_row(_LENGTHS[name], *figures)
    return table


def _advice(report: MemoryReport) -> Iterator[str]:
    yield f"at most {report.limit['requests']:,} typical requests run at once, bounded by {report.limit['by']}"
    if "requests_if_prefix_pinned" in report.limit:
        yield f"at most {report.limit['requests_if_prefix_pinned']:,} if all of them begin with a pinned prompt"
    if "requests_if_least_urgent" in report.limit:
        yield f"at most {report.limit['requests_if_least_urgent']:,} if all of them are of the least urgent level"
    for offer in report.help:
        yield f"{offer['set']} would let {offer['requests']:,} run"
    if len(report.groups) > 1 or report.groups[0]["window_tokens"]:
        groups = (
            f"{group['layers']} {group['kind']}" + (f" ({group['window_tokens']})" if group["window_tokens"] else "")
            for group in report.groups
        )
        yield f"layers in KV cache groups of the engine, windows in tokens: {', '.join(groups)}"
    for notice in report.notices:
        yield f"Notice: {notice}"
