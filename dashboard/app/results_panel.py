"""What the simulations of both setups say: the figures, how sure they are, and why they differ."""

from collections.abc import Callable, Mapping
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from dashboard.app.panels import downloads, draw, table
from dashboard.app.session import Checked, pair
from dashboard.comparison_wording import VERDICT_WORDS, probability, relative, scale_of
from dashboard.figures.kv_occupancy import blocks_of, kv_occupancy
from dashboard.figures.load import load_over_time, load_per_replica
from dashboard.figures.overlays import overlay
from dashboard.figures.step_time import step_time
from dashboard.figures.throughput import throughput_over_time
from dashboard.figures.time_bins import coarse_edges, fine_edges, run_end_s
from dashboard.figures.ttft import ttft_over_time
from dashboard.formatting import number, seconds, share
from dashboard.report import render_report
from dashboard.verdict import verdicts
from dashboard.what_if.curves import curve_of
from dashboard.what_if.differences import differences
from dashboard.what_if.exports import as_command, as_python, as_yaml
from dashboard.what_if.time_shares import TIME_NAMES, step_shape, time_shares
from simcore.build.explanation import explain_step
from simcore.core.result import Result
from simcore.metrics.registry import definition, latencies
from simcore.metrics.step_bins import StepBins
from simcore.output.cluster_text import replica_count
from simcore.output.run_folder import summary_text

_MARKS = {"better": "▲ ", "worse": "▼ "}


def setup_downloads(side: str, checked: Checked) -> None:
    """The setup as a file, as commands and as a script."""
    document, name = pair().document(side), f"setup-{side.lower()}"
    files: list[tuple[str, str, Any, str]] = [
        ("YAML", f"{name}.yaml", as_yaml(document), "text/yaml"),
        ("Command line", f"{name}.sh", as_command(document, name), "text/x-shellscript"),
        ("Python", f"{name}.py", as_python(document, name), "text/x-python"),
    ]
    downloads(files, name)


def results_panel(results: Mapping[str, Result], found: Mapping[str, Checked]) -> None:
    """Everything about the runs that there are; differences where there are both."""
    for column, (side, result) in zip(st.columns(2, gap="large"), results.items(), strict=False):
        with column:
            _verdict(side, result)
    if len(results) == 2:
        differences_table(results["A"], results["B"])
    _distributions(results)
    _over_time(results)
    _why(results, found)
    for side, result in results.items():
        name = f"setup-{side.lower()}"
        files: list[tuple[str, str, Any, str]] = [
            (f"Report of {side} (HTML)", f"{name}.html", _rendered(result, f"Setup {side}"), "text/html"),
            (f"Summary of {side} (JSON)", f"{name}.json", summary_text(result.summary), "application/json"),
        ]
        downloads(files, f"results-{side}")


def _rendered(result: Result, title: str) -> Callable[[], str]:
    """Made when it is asked for: a report takes longer to draw than the page."""
    return lambda: render_report(result, title)


def _verdict(side: str, result: Result) -> None:
    """Whether limits were held, and the figures most readers came for."""
    summary = result.summary
    for good, words in verdicts(summary):
        if good is not None:
            (st.success if good else st.error)(f"{side}: {words}")
    metrics, counts, cost, use = (summary[name] for name in ("metrics", "counts", "cost", "utilisation"))
    figures = {
        "P99 TTFT": (seconds(metrics["ttft_s"]["p99"]), "ttft_s"),
        "P99 TPOT": (seconds(metrics["tpot_s"]["p99"]), "tpot_s"),
        "Output tokens/s": (number(summary["throughput"]["output_tokens_per_s"]), "output_tokens_per_s"),
        "USD per 1M tokens": (
            number(cost["usd_per_million_output_tokens"]),
            "usd_per_million_output_tokens",
        ),
    }
    for column, (name, (value, metric)) in zip(st.columns(len(figures)), figures.items(), strict=True):
        column.metric(name, value, help=definition(metric))
    lines = f"{counts['finished']:,} of {counts['arrived']:,} requests finished, {counts['rejected']:,} rejected."
    lines += f" Busy {share(use['busy_share'])} of the time, MFU {share(use['mfu'])}, MBU {share(use['mbu'])}; "
    lines += f"{number(cost['usd_per_h'])} USD/h ({cost['price_source']})."
    st.caption(lines)
    for warning in summary["warnings"]:
        st.warning(warning)
    for notice in summary["notices"]:
        st.caption(f"Notice: {notice}")


def differences_table(first: Result, second: Result) -> None:
    """A, the baseline, beside B: each metric, its difference, and how sure that is."""
    columns: dict[str, list[str]] = {name: [] for name in ("Metric", "Unit", "A", "B", "B − A", "95 % interval", "p")}
    columns["Verdict"] = []
    for pair_of_rows in differences(first, second):
        scale = scale_of(pair_of_rows)
        _, row = pair_of_rows
        change = scale.difference(row)
        words = row.verdict == "untested" and "one run, no interval"
        values = (
            row.title,
            scale.unit,
            *(scale.value(each.value) for each in pair_of_rows),
            change if row.relative_difference is None else f"{change} ({relative(row)})",
            scale.interval(row),
            "" if row.p_value is None else probability(row.p_value),
            words or _MARKS.get(row.verdict, "") + VERDICT_WORDS[row.verdict],
        )
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value)
    st.markdown("**Differences on the same requests**")
    table(columns, ("A", "B", "B − A", "95 % interval", "p"))
    st.caption(
        "Intervals and p-values of a difference are from a bootstrap over blocks of requests that both setups served. "
        "For several seeds use the page Policies, or servetwin compare."
    )


def _distributions(results: Mapping[str, Result]) -> None:
    st.markdown("**Latencies**")
    names = {side: f"Setup {side}" for side in results}
    drawn = [latency for latency in latencies() if latency.drawn]
    for column, metric in zip(st.columns(len(drawn)), drawn, strict=True):
        curves = {side: curve for side, result in results.items() if (curve := curve_of(result, metric)) is not None}
        with column:
            figure = overlay(metric.name, curves, names, next(iter(results)), _limits_s(results, metric.name))
            draw(figure, f"cdf-{metric.name}", f"{metric.title}: {metric.definition}.")


def _limits_s(results: Mapping[str, Result], metric: str) -> dict[str, float]:
    """The limits of a latency by percentile; both setups have the same."""
    objectives = next(iter(results.values())).summary["slo"] or {}
    return {
        objective["percentile"]: objective["limit_s"]
        for key, objective in objectives.items()
        if key.partition(".")[0] == metric
    }


def _over_time(results: Mapping[str, Result]) -> None:
    st.markdown("**Over time**")
    end_s = max(map(run_end_s, results.values()))
    for column, (side, result) in zip(st.columns(2, gap="large"), results.items(), strict=False):
        with column:
            if not run_end_s(result):
                st.caption("– no data")
                continue
            for name, figure in _figures_over_time(result).items():
                if figure is not None:
                    figure.update_xaxes(range=[0, end_s])
                draw(figure, f"{name}-{side}", f"Setup {side}: {name}.")


def _figures_over_time(result: Result) -> dict[str, go.Figure | None]:
    end_s, replicas = run_end_s(result), replica_count(result.scenario["cluster"])
    fine, coarse = fine_edges(end_s), coarse_edges(end_s, len(result.requests["arrival_s"]))
    bins = StepBins(result.steps, replicas, fine)
    coarse_bins = StepBins(result.steps, replicas, coarse)
    figures = {
        "running and waiting requests": load_over_time(result.requests, result.steps, bins, fine),
        "KV memory in use": kv_occupancy(result.steps, bins, fine, blocks_of(result.summary)),
        "throughput": throughput_over_time(result.requests, result.steps, coarse_bins, coarse),
        "TTFT by time of arrival": ttft_over_time(result.requests, coarse),
    }
    if replicas > 1:
        figures["running requests of each replica"] = load_per_replica(result.steps, bins, fine)
    return figures


def _why(results: Mapping[str, Result], found: Mapping[str, Checked]) -> None:
    st.markdown("**Why: where the time goes**")
    shares = {side: time_shares(result) for side, result in results.items()}
    columns = {"Replicas' time": list(TIME_NAMES.values())}
    columns |= {f"Setup {side}": [share(parts[name]) for name in TIME_NAMES] for side, parts in shares.items()}
    table(columns, [f"Setup {side}" for side in shares])
    decodes, prompts = {}, {}
    for side, result in results.items():
        shapes = step_shape(result)
        if shapes is not None:
            decodes[f"{side}: {shapes[0]}"] = explain_step(found[side].simulation, shapes[0])
            prompts[f"{side}: {shapes[1]}"] = explain_step(found[side].simulation, shapes[1])
    if decodes:
        for column, (name, steps) in zip(
            st.columns(2, gap="large"), {"decode step": decodes, "prompt": prompts}.items(), strict=True
        ):
            with column:
                draw(
                    step_time(steps),
                    f"why-{name}",
                    f"A typical {name} of each run; 64x2048 is 64 decodes of 2,048 tokens each.",
                )
