"""The report of a run: everything that a run folder says, on one page."""

from typing import Any

import plotly.graph_objects as go
import yaml

from dashboard.details import details_section
from dashboard.figures.distributions import distribution
from dashboard.figures.kv_occupancy import blocks_of, kv_occupancy
from dashboard.figures.lengths import length_histograms
from dashboard.figures.load import load_over_time, load_per_replica
from dashboard.figures.service import MOST_TENANTS, tenant_service
from dashboard.figures.style import shade
from dashboard.figures.throughput import throughput_over_time
from dashboard.figures.time_bins import coarse_edges, fine_edges, run_end_s
from dashboard.figures.ttft import ttft_over_time
from dashboard.formatting import seconds
from dashboard.headline import (
    cards_section,
    latency_section,
    requests_section,
    slo_section,
    title_block,
)
from dashboard.markup import facts, section, text
from dashboard.page import figure_block, page
from dashboard.pools_section import pools_section
from dashboard.resilience_section import resilience_section
from dashboard.service_section import service_section
from dashboard.verdict import verdict_section
from simcore.core.result import Result
from simcore.metrics.distribution import cumulative_points
from simcore.metrics.registry import latencies
from simcore.metrics.step_bins import StepBins
from simcore.output.cluster_text import replica_count


def render_report(result: Result, title: str) -> str:
    """The report as a complete HTML document.

    The same result and title give the same text to the byte: nothing in it depends on when or how fast it was made.
    """
    summary = result.summary
    body = "".join(
        (
            title_block(title, result.scenario, summary),
            verdict_section(summary),
            requests_section(summary),
            cards_section(summary),
            slo_section(summary),
            latency_section(summary),
            pools_section(summary),
            resilience_section(summary),
            service_section(result),
            _distributions(result),
            _over_time(result),
            _tenants(result),
            _workload(result),
            details_section(summary),
            _origin(result),
        )
    )
    return page(title, body)


def _distributions(result: Result) -> str:
    requests, metrics, slo = result.requests, result.summary["metrics"], result.summary["slo"] or {}
    arrived = requests["arrival_s"] >= (result.summary["window"]["start_s"] or 0.0)
    blocks = []
    for latency in latencies():
        if latency.of_requests is None:
            points, of_what = result.token_gaps, "gaps"
        elif latency.drawn:
            points, of_what = cumulative_points(latency.of_requests(requests)[arrived]), "requests"
        else:
            continue
        statistics = metrics[latency.name]
        limits_s = {
            objective["percentile"]: objective["limit_s"]
            for key, objective in slo.items()
            if key.partition(".")[0] == latency.name
        }
        figure = distribution(latency, points, statistics, of_what, limits_s)
        caption = f"Cumulative, over {statistics['count']:,} {of_what}: {latency.definition}."
        if limits_s:
            caption += " Dashed: the objective, as high as the share that must keep it."
        blocks.append(figure_block(latency.name, figure, latency.title, caption))
    return section("Distributions", f'<div class="grid">{"".join(blocks)}</div>')


def _over_time(result: Result) -> str:
    requests, steps, summary = result.requests, result.steps, result.summary
    end_s, replicas = run_end_s(result), replica_count(result.scenario["cluster"])
    figures: dict[str, go.Figure | None] = dict.fromkeys(("load", "replicas", "kv", "throughput", "ttft"))
    widths_s = [0.0, 0.0]
    if end_s > 0:
        fine, coarse = fine_edges(end_s), coarse_edges(end_s, len(requests["arrival_s"]))
        widths_s = [float(fine[1]), float(coarse[1])]
        bins = StepBins(steps, replicas, fine)
        figures["load"] = load_over_time(requests, steps, bins, fine)
        figures["replicas"] = load_per_replica(steps, bins, fine)
        figures["kv"] = kv_occupancy(steps, bins, fine, blocks_of(summary))
        coarse_bins = StepBins(steps, replicas, coarse)
        figures["throughput"] = throughput_over_time(requests, steps, coarse_bins, coarse)
        figures["ttft"] = ttft_over_time(requests, coarse)
    unmeasured = _unmeasured_s(summary["window"], end_s)
    grey = " Grey: outside the measured window." if unmeasured else ""
    for figure in figures.values():
        if figure is not None:
            figure.update_xaxes(range=[0, end_s])
            for from_s, to_s in unmeasured:
                shade(figure, from_s, to_s)
    held = f"Means over {seconds(widths_s[0])}; values are known where the batch changes, and held in between.{grey}"
    filling = f"Means over {seconds(widths_s[0])}; between changes of the batch memory fills step by step.{grey}"
    rates = f"Means over {seconds(widths_s[1])}. Output tokens of all requests, unfinished ones too.{grey}"
    waits = f"P50 and P99 of the requests that arrived within {seconds(widths_s[1])}; of those that got a token.{grey}"
    blocks = (
        figure_block("load", figures["load"], "Running and waiting requests", f"All replicas together. {held}"),
        *(
            [figure_block("replicas", figures["replicas"], "Load of each replica", f"Running requests. {held}")]
            if replicas > 1
            else []
        ),
        figure_block("kv", figures["kv"], "KV memory in use", f"Share of each replica's blocks. {filling}"),
        figure_block("throughput", figures["throughput"], "Throughput", rates),
        figure_block("ttft", figures["ttft"], "Time to first token over time", waits),
    )
    return section("Over time", f'<div class="stack">{"".join(blocks)}</div>')


def _tenants(result: Result) -> str:
    figure = tenant_service(result.requests, run_end_s(result))
    if figure is None:
        return ""
    caption = "Prompt tokens of admitted requests and twice the output tokens delivered, since the start of the run"
    caption += f"; the {MOST_TENANTS} tenants served most." if len(figure.data) == MOST_TENANTS else "."
    return section("Tenants", figure_block("service", figure, "Service over time", caption))


def _workload(result: Result) -> str:
    figure = length_histograms(result.requests)
    caption = "Prompts of all requests, outputs of the finished ones; bins are equally wide on the logarithmic axis."
    return section("Workload", figure_block("lengths", figure, "Prompt and output lengths", caption))


def _unmeasured_s(window: dict[str, Any], end_s: float) -> list[tuple[float, float]]:
    """The stretches of the run that the summary leaves out: warm-up and drain."""
    stretches = []
    if window["warmup_excluded"] and window["start_s"]:
        stretches.append((0.0, window["start_s"]))
    if window["drain_excluded"] and window["end_s"] is not None and window["end_s"] < end_s:
        stretches.append((window["end_s"], end_s))
    return stretches


def _origin(result: Result) -> str:
    run = result.summary["run"]
    document = yaml.safe_dump(result.scenario, sort_keys=False, allow_unicode=True)
    rows = [("Seed", text(run["seed"])), *((name, text(version)) for name, version in sorted(run["versions"].items()))]
    return section(
        "What was run",
        f'<div class="panel"><details><summary>Scenario in full</summary><pre>{text(document)}</pre></details></div>'
        f'<div class="panel" style="margin-top:16px"><h3>Seed and versions</h3>{facts(rows)}</div>',
    )
