"""The head of the report: what became of the requests, and the figures most readers came for."""

from typing import Any

from dashboard.details import band_method, figure_value
from dashboard.formatting import number, percentile_name, seconds, share
from dashboard.markup import NO_DATA, band, box, figure_of, interval, section, text
from simcore.metrics.definitions import PERCENTILES
from simcore.metrics.metric import Latency
from simcore.metrics.registry import figures, latencies, latency
from simcore.output.cluster_text import described, replicas_of

_STATES = ("finished", "rejected", "unfinished")
_FIGURES = {"mean": "Mean", **{key: percentile_name(key) for key in PERCENTILES}}


def title_block(title: str, scenario: dict[str, Any], summary: dict[str, Any]) -> str:
    """The title, what was simulated, and every warning and notice of the run."""
    cluster = scenario["cluster"]
    if "pools" in cluster or "scaling" in cluster:
        devices = replicas_of(cluster)
    else:
        devices = f"{cluster['replicas']} replica{'s' if cluster['replicas'] != 1 else ''} · {described(cluster)}"
    what = f"{scenario['model']} · {devices}"
    subtitle = f"{what} · {scenario['engine']} · seed {summary['run']['seed']}"
    return (
        f'<header><h1>{text(title)}</h1><p class="quiet">{text(subtitle)}</p></header>'
        + box("warning", "Warnings", summary["warnings"])
        + box("notice", "Notices", summary["notices"])
    )


def requests_section(summary: dict[str, Any]) -> str:
    """How many requests arrived, finished, were rejected (and why) and never finished; and which were measured."""
    counts, window = summary["counts"], summary["window"]
    arrived = counts["arrived"]
    parts = "".join(
        f'<i class="{state}" style="width:{100 * counts[state] / arrived:.3f}%"></i>' for state in _STATES if arrived
    )
    entries = f"<div><dt>Arrived</dt><dd>{number(arrived)}</dd></div>" + "".join(
        f'<div><dt><span class="dot {state}"></span>{state.capitalize()}</dt><dd>{number(counts[state])}</dd></div>'
        for state in _STATES
    )
    reasons = box(
        "warning",
        "Rejected, by reason",
        (f"{count:,}: {reason}" for reason, count in sorted(counts["rejected_by_reason"].items())),
    )
    span = figure_of(window["measured_s"], seconds)
    if window["start_s"] is not None and window["end_s"] is not None:
        span += f" from {number(float(window['start_s']))} s to {number(float(window['end_s']))} s"
    parts_of_it = ", ".join(
        f"{part} {'excluded' if window[f'{part}_excluded'] else 'included'}" for part in ("warmup", "drain")
    ).replace("warmup", "warm-up")
    body = (
        f'<dl class="counts">{entries}</dl><div class="bar">{parts}</div>{reasons}'
        f"<p><strong>Measured window:</strong> {span} ({parts_of_it}), "
        f"{number(window['requests'])} requests in the latencies.</p>"
        f'<p class="quiet">Defined as: {text(window["definition"].rstrip("."))}.</p>'
    )
    return section("Requests", f'<div class="panel">{body}</div>')


def cards_section(summary: dict[str, Any]) -> str:
    """The headline figures as cards, each with its confidence interval where it has one."""
    metrics = summary["metrics"]
    cards = []
    for metric in latencies():
        for percentile in ("p50", "p99") if metric.drawn else ():
            statistics = metrics[metric.name]
            notes = interval(statistics["ci"][percentile], seconds) + band(statistics, percentile, seconds)
            label = f"{metric.short} {percentile_name(percentile)}"
            cards.append(_card(label, figure_of(statistics[percentile], seconds), notes))
    cards += [_card(figure.title, *figure_value(figure, summary)) for figure in figures() if figure.card]
    words = "Ranges are confidence intervals, as stated below the latencies."
    if "band" in summary["pricing"]:
        words += f" Bands: {band_method(summary)}."
    note = f'<p class="quiet"><small>{text(words)}</small></p>'
    return section("Headline figures", f'<div class="cards">{"".join(cards)}</div>{note}')


def _card(label: str, value: str, note: str = "") -> str:
    figure, space, unit = value.partition(" ")
    if space and not value.startswith("<"):  # the unit in small print, so that the card stays in one line
        value = f"{figure} <span>{unit}</span>"
    return f'<div class="card"><span class="label">{text(label)}</span><b>{value}</b>{note}</div>'


def latency_section(summary: dict[str, Any]) -> str:
    """Mean, percentiles and extremes of every latency, confidence intervals below them."""
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Latency", *_FIGURES.values(), "Min", "Max", "Count"))
    rows = "".join(_latency_row(metric, summary["metrics"][metric.name]) for metric in latencies())
    confidence = summary["metrics"]["ttft_s"]["ci"]
    counts = summary["counts"]
    note = (
        f"Below each figure its {100 * confidence['level']:g} % confidence interval ({confidence['method']}), where "
        f"the data allow one. {number(counts['rejected'])} rejected and "
        f"{number(counts['unfinished'])} unfinished requests are in no percentile of what they did not come to."
    )
    table = f'<table class="wide"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return section("Latencies", f'<div class="panel">{table}</div><p class="quiet"><small>{text(note)}</small></p>')


def _latency_row(metric: Latency, statistics: dict[str, Any]) -> str:
    cells = [
        f"<td>{figure_of(statistics[key], seconds)}{interval(statistics['ci'][key], seconds)}"
        f"{band(statistics, key, seconds)}</td>"
        for key in _FIGURES
    ]
    cells += [f"<td>{figure_of(statistics[key], seconds)}</td>" for key in ("min", "max")]
    heading = f'<th scope="row">{text(metric.short)}<small>{text(metric.definition)}</small></th>'
    return f"<tr>{heading}{''.join(cells)}<td>{number(statistics['count'])}</td></tr>"


def slo_section(summary: dict[str, Any]) -> str:
    """Each objective, how many requests kept it, and whether it was met."""
    objectives = summary["slo"]
    if not objectives:
        return ""
    rows = []
    for key, objective in objectives.items():
        name = latency(key.partition(".")[0]).short
        percentile = percentile_name(objective["percentile"])
        asked = text(f"{percentile} {name} ≤ {seconds(objective['limit_s'])}")
        rows.append(
            f'<tr><th scope="row">{asked}</th><td>{figure_of(objective["share_within"], share)}</td>'
            f"<td>{_verdict(objective['met'])}</td></tr>"
        )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Objective", "Requests within the limit", "Verdict"))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return section("Service level objectives", f'<div class="panel">{table}</div>')


def _verdict(met: bool | None) -> str:
    if met is None:
        return NO_DATA
    return '<span class="met">✓ met</span>' if met else '<span class="missed">✗ missed</span>'
