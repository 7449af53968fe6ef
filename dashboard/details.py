"""The lower half of the figures: throughput, memory, utilisation, and what time and money were priced by."""

from typing import Any

from dashboard.formatting import number, share
from dashboard.markup import NO_DATA, band, facts, figure_of, interval, section, text


def details_section(summary: dict[str, Any]) -> str:
    """Throughput, memory, utilisation, cost and where step times come from, in full."""
    tables = (
        ("Throughput", _throughput_facts(summary)),
        ("KV memory and preemptions", _memory_facts(summary["kv"], summary["preemptions"])),
        ("Utilisation", _utilisation_facts(summary["utilisation"])),
        ("Cost and prices of steps", _price_facts(summary["cost"], summary["pricing"])),
    )
    panels = "".join(f'<div class="panel"><h3>{text(title)}</h3>{facts(rows)}</div>' for title, rows in tables)
    return section("In detail", f'<div class="grid">{panels}</div>')


def _throughput_facts(summary: dict[str, Any]) -> list[tuple[str, str]]:
    names = {
        "requests_per_s": "Requests/s",
        "goodput_requests_per_s": "Goodput, requests/s",
        "output_tokens_per_s": "Output tokens/s",
        "total_tokens_per_s": "Prompt and output tokens/s",
    }
    rows = [(name, " ".join(throughput_figure(summary, key))) for key, name in names.items()]
    confidence = summary["throughput"]["ci"]
    return [*rows, ("Intervals by", text(confidence["method"]))] if confidence else rows


def throughput_figure(summary: dict[str, Any], key: str) -> tuple[str, str]:
    """A rate, its confidence interval and its band as HTML; goodput only where objectives say what counts."""
    if key == "goodput_requests_per_s" and not summary["slo"]:
        return '<span class="none">– <small>no SLO stated</small></span>', ""
    throughput = summary["throughput"]
    notes = interval((throughput["ci"] or {}).get(key), number) + band(throughput, key, number)
    return figure_of(throughput[key], number), notes


def band_method(summary: dict[str, Any]) -> str:
    """What the uncertainty bands of a run are, in words."""
    made = summary["pricing"]["band"]
    return f"{100 * made['level']:g} % uncertainty bands of {made['replays']} replays: {made['method']}"


def _memory_facts(kv: dict[str, Any], preemptions: dict[str, Any]) -> list[tuple[str, str]]:
    capacity = f"{kv['blocks_per_replica']:,} blocks of {kv['block_size_tokens']} tokens ({text(kv['source'])})"
    return [
        ("Capacity of a replica", capacity),
        ("Capacity in tokens", number(kv["capacity_tokens_per_replica"])),
        ("Bytes per token", figure_of(kv["bytes_per_token"], number)),
        ("Most blocks in use on a replica", figure_of(kv["peak_used_blocks"], number)),
        ("Mean share in use", figure_of(kv["mean_used_share"], share)),
        ("Preemptions", f"{number(preemptions['total'])} ({number(preemptions['requests'])} requests affected)"),
    ]


def _utilisation_facts(utilisation: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("Time busy", figure_of(utilisation["busy_share"], share)),
        ("MFU (model FLOPs over peak)", figure_of(utilisation["mfu"], share)),
        ("MBU (bytes moved over peak)", figure_of(utilisation["mbu"], share)),
        ("Host overhead in busy time", figure_of(utilisation["host_share_of_busy"], share)),
        ("Mean decode batch", figure_of(utilisation["mean_decode_batch"], number)),
        ("Mean running requests", figure_of(utilisation["mean_running_requests"], number)),
        ("Mean waiting requests", figure_of(utilisation["mean_waiting_requests"], number)),
    ]


def _price_facts(cost: dict[str, Any], pricing: dict[str, Any]) -> list[tuple[str, str]]:
    def usd(value: float) -> str:
        return f"${number(value)}"

    shares = ", ".join(f"{source} {share(part)}" for source, part in sorted(pricing["shares"].items()))
    return [
        ("Price per hour", figure_of(cost["usd_per_h"], usd)),
        ("Cost of the run", figure_of(cost["usd"], usd)),
        ("Cost of 1 M output tokens", figure_of(cost["usd_per_million_output_tokens"], usd)),
        ("Source of the price", figure_of(cost["price_source"], str)),
        ("Step times priced by", text(shares) if shares else NO_DATA),
        ("Outside the calibrated range", figure_of(pricing["outside_calibrated_range"], share)),
        ("Uncertainty", text(pricing["note"])),
    ]
