"""The report of a comparison: what differs from the baseline, by how much, and how sure that is."""

import yaml

from dashboard.comparison_wording import (
    VERDICT_WORDS,
    Scale,
    probability,
    relative,
    scale_of,
    seeds_in_words,
    short_names,
)
from dashboard.figures.cost_against_latency import cost_against_latency
from dashboard.figures.differences import forest
from dashboard.figures.overlays import overlay
from dashboard.markup import NO_DATA, box, facts, section, text
from dashboard.page import figure_block, page
from experiments.comparison import Comparison, Row
from simcore.metrics.registry import latency
from simcore.output.cluster_text import pools_of

_COST, _TAILS = "usd_per_million_output_tokens", ("ttft_s.p99", "tpot_s.p99")
_MARKS = {"better": ("met", "▲ better"), "worse": ("missed", "▼ worse")}


def render_comparison(comparison: Comparison, title: str) -> str:
    """The report as a complete HTML document; the same comparison and title give the same text to the byte."""
    body = "".join(
        (
            _title_block(comparison, title),
            _table(comparison),
            _costs(comparison),
            _forest(comparison),
            _distributions(comparison),
            _origin(comparison),
        )
    )
    return page(title, body)


def _title_block(comparison: Comparison, title: str) -> str:
    scenario = comparison.scenario
    accelerators = dict.fromkeys(pool["accelerator"] for pool in pools_of(scenario["cluster"]))
    runs = len(comparison.variants) * len(comparison.seeds) - len(comparison.missing)
    subtitle = (
        f"{len(comparison.variants)} variants of {', '.join(comparison.varied)} · {seeds_in_words(comparison.seeds)} · "
        f"{runs} runs · {scenario['model']} on {', '.join(accelerators)}"
    )
    return (
        f'<header><h1>{text(title)}</h1><p class="quiet">{text(subtitle)}</p></header>'
        + _key(comparison)
        + box("warning", "Warnings", comparison.warnings)
        + box("notice", "Notices", comparison.notices)
    )


def _key(comparison: Comparison) -> str:
    """What the numbers stand for, where variants go by numbers."""
    names = short_names(comparison.variants)
    rows = [(name, text(label)) for label, name in names.items() if name != label]
    return f'<div class="panel">{facts(rows)}</div>' if rows else ""


def _table(comparison: Comparison) -> str:
    """A row per metric, a column per variant, the baseline first."""
    names = short_names(comparison.variants)
    ordered = sorted(comparison.variants, key=lambda variant: variant != comparison.baseline)
    heads = [f"{names[variant]}{' (baseline)' * (variant == comparison.baseline)}" for variant in ordered]
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in ("Metric", *heads))
    body = ""
    for rows in comparison.by_metric():
        scale = scale_of(rows)
        by_variant = {row.variant: row for row in rows}
        cells = "".join(f"<td>{_cell(by_variant[variant], scale)}</td>" for variant in ordered)
        body += f'<tr><th scope="row">{text(rows[0].title)}<small>{text(scale.unit)}</small></th>{cells}</tr>'
    note = f"Each cell: the mean over seeds; the difference to the baseline and its interval; p. {comparison.method}"
    return section(
        f"Differences to {names[comparison.baseline]}",
        f'<div class="panel"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        f'<p class="quiet"><small>{text(note)}</small></p>',
    )


def _cell(row: Row, scale: Scale) -> str:
    if row.value is None:
        return NO_DATA
    value = text(scale.value(row.value))
    if row.verdict == "baseline" or row.difference is None:
        return value
    if row.verdict == "same":
        return f"{value}<small>{VERDICT_WORDS['same']}</small>"
    lines = [f"{scale.difference(row)} ({relative(row)})", scale.interval(row)]
    if row.p_holm is not None:
        lines.append(f"p {probability(row.p_holm)}")
    style, words = _MARKS.get(row.verdict, ("none", VERDICT_WORDS[row.verdict]))
    small = "".join(f"<small>{text(line)}</small>" for line in lines if line)
    return f'{value}{small}<small class="{style}">{words}</small>'


def _forest(comparison: Comparison) -> str:
    blocks = []
    names = short_names(comparison.variants)
    for rows in comparison.by_metric():
        others = [row for row in rows if row.variant != comparison.baseline]
        if all(row.verdict == "same" for row in others):
            continue
        scale = scale_of(rows)
        baseline = next(row for row in rows if row.variant == comparison.baseline)
        caption = f"Baseline: {scale.value(baseline.value)} {scale.unit}."
        figure = forest(others, scale, names, comparison.baseline)
        blocks.append(figure_block(f"difference-{rows[0].metric}", figure, rows[0].title, caption))
    note = (
        "Marks are differences, bars their intervals. Filled: better (green) or worse (orange), as the interval "
        "leaves out 0; open: no clear difference, or not tested. Metrics that are the same everywhere are left out."
    )
    legend = f'<p class="quiet" style="margin-top:8px"><small>{text(note)}</small></p>'
    return section("How sure the differences are", f'<div class="grid">{"".join(blocks)}</div>{legend}')


def _costs(comparison: Comparison) -> str:
    """Cost against tail latency, where variants differ in cost."""
    by_name = {rows[0].metric: rows for rows in comparison.by_metric()}
    costs = by_name.get(_COST)
    if costs is None:
        return ""
    names, blocks = short_names(comparison.variants), []
    for metric in _TAILS:
        figure = cost_against_latency(costs, by_name[metric], names, comparison.baseline) if metric in by_name else None
        if figure is not None:
            blocks.append(figure_block(f"cost-{metric}", figure, f"Cost against {by_name[metric][0].title}", ""))
    return section("What it costs", f'<div class="grid">{"".join(blocks)}</div>') if blocks else ""


def _distributions(comparison: Comparison) -> str:
    blocks = [
        figure_block(
            f"distribution-{metric}",
            overlay(metric, curves, short_names(comparison.variants), comparison.baseline),
            latency(metric).title,
            f"Cumulative, over the requests of all seeds that have it: {latency(metric).definition}.",
        )
        for metric, curves in comparison.curves.items()
    ]
    return section("Distributions", f'<div class="grid">{"".join(blocks)}</div>')


def _origin(comparison: Comparison) -> str:
    document = yaml.safe_dump(comparison.scenario, sort_keys=False, allow_unicode=True)
    return section(
        "What was run",
        f'<div class="panel"><p>Varied: {text(", ".join(comparison.varied))}. Variants: '
        f"{text('; '.join(comparison.variants))}.</p>"
        f"<details><summary>Scenario of the baseline in full</summary><pre>{text(document)}</pre></details></div>",
    )
