"""The lower half of the figures: throughput, memory, utilisation, and what time and money were priced by."""

from typing import Any

from dashboard.formatting import number, share, worded
from dashboard.markup import NO_DATA, band, facts, figure_of, interval, section, text
from simcore.metrics.metric import Figure, Rate
from simcore.metrics.registry import lines

Rows = list[tuple[str, str]]


def details_section(summary: dict[str, Any]) -> str:
    """Every figure with its interval, a table for each line of figures, and where step times come from."""
    more = {
        "throughput": _intervals(summary["throughput"]),
        "KV cache": _memory_facts(summary["kv"]),
        "cost": _price_facts(summary["cost"], summary["pricing"]),
    }
    panels = ""
    for line, figures in lines():
        rows = [(figure.title, " ".join(figure_value(figure, summary))) for figure in figures]
        title = line[0].upper() + line[1:]
        panels += f'<div class="panel"><h3>{text(title)}</h3>{facts([*rows, *more.get(line, [])])}</div>'
    return section("In detail", f'<div class="grid">{panels}</div>')


def figure_value(figure: Figure, summary: dict[str, Any]) -> tuple[str, str]:
    """A figure, and its confidence interval and band, as HTML; what needs objectives says so where there are none."""
    if figure.needs_slo and not summary["slo"]:
        return '<span class="none">– <small>no SLO stated</small></span>', ""
    notes = ""
    if isinstance(figure, Rate):
        rates = summary["throughput"]
        notes = interval((rates["ci"] or {}).get(figure.name), number) + band(rates, figure.name, number)
    return figure_of(figure.of_summary(summary), lambda value: worded(figure, value)), notes


def _intervals(throughput: dict[str, Any]) -> Rows:
    return [("Intervals by", text(throughput["ci"]["method"]))] if throughput["ci"] else []


def band_method(summary: dict[str, Any]) -> str:
    """What the uncertainty bands of a run are, in words."""
    made = summary["pricing"]["band"]
    return f"{100 * made['level']:g} % uncertainty bands of {made['replays']} replays: {made['method']}"


def _memory_facts(kv: dict[str, Any]) -> Rows:
    capacity = "differs between pools"
    if kv["blocks_per_replica"] is not None and kv["block_size_tokens"] is not None:
        capacity = f"{kv['blocks_per_replica']:,} blocks of {kv['block_size_tokens']} tokens ({text(kv['source'])})"
    return [
        ("Capacity of a replica", capacity),
        ("Capacity in tokens", figure_of(kv["capacity_tokens_per_replica"], number)),
        ("Bytes per token", figure_of(kv["bytes_per_token"], number)),
        ("Most blocks in use on a replica", figure_of(kv["peak_used_blocks"], number)),
        ("Mean share in use", figure_of(kv["mean_used_share"], share)),
    ]


def _price_facts(cost: dict[str, Any], pricing: dict[str, Any]) -> Rows:
    def usd(value: float) -> str:
        return f"${number(value)}"

    shares = ", ".join(f"{source} {share(part)}" for source, part in sorted(pricing["shares"].items()))
    return [
        ("Cost of the run", figure_of(cost["usd"], usd)),
        ("Source of the price", figure_of(cost["price_source"], str)),
        ("Step times priced by", text(shares) if shares else NO_DATA),
        ("Outside the calibrated range", figure_of(pricing["outside_calibrated_range"], share)),
        ("Uncertainty", text(pricing["note"])),
    ]
