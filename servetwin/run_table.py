"""What ``servetwin run`` prints: the headline figures of a result."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from experiments.bands.bands import METRICS, STATISTICS
from servetwin.console import plain_table, print_table
from servetwin.digits import figure, half_width_text
from simcore.core.result import Result
from simcore.metrics.definitions import PERCENTILES
from simcore.output.cluster_text import replicas_of

_NAMES = {
    "ttft_s": "TTFT (s)",
    "tpot_s": "TPOT (ms)",
    "itl_s": "ITL (ms)",
    "e2e_s": "E2E (s)",
    "queue_s": "queue (s)",
}
_RATES = {
    "requests_per_s": "requests/s",
    "output_tokens_per_s": "output tokens/s",
    "total_tokens_per_s": "total tokens/s",
}
_MILLISECONDS = ("tpot_s", "itl_s")


def print_run(result: Result, console: Console) -> None:
    """Print counts, latencies, throughput and whatever the reader should be warned of."""
    summary = result.summary
    console.print(_title(result), soft_wrap=True)
    print_table(_latencies(summary["metrics"]), console)
    if "band" in summary["pricing"]:
        print_table(_bands(summary), console)
    for line in (*_throughput(summary), *_resources(summary)):
        console.print(line, soft_wrap=True)
    for warning in summary["warnings"]:
        console.print(f"[yellow]Warning:[/] {escape(warning)}", soft_wrap=True)
    for notice in summary["notices"]:
        console.print(f"Notice: {escape(notice)}", soft_wrap=True)


def _title(result: Result) -> str:
    scenario, counts = result.scenario, result.summary["counts"]
    cluster = scenario["cluster"]
    devices = replicas_of(cluster)
    rejected = "".join(f"; {number:,} {reason}" for reason, number in counts["rejected_by_reason"].items())
    return (
        f"[bold]{escape(str(scenario['model']))}[/] on [bold]{escape(devices)}[/], engine {scenario['engine']}\n"
        f"{counts['arrived']:,} requests: {counts['finished']:,} finished, {counts['rejected']:,} rejected, "
        f"{counts['unfinished']:,} unfinished{escape(rejected)}"
    )


def _latencies(metrics: dict[str, Any]) -> Table:
    percentiles = [f"P{percent:g}" for percent in PERCENTILES.values()]
    table = plain_table("", "mean", "±95%", *percentiles)
    for name, title in _NAMES.items():
        scale = 1e3 if name in _MILLISECONDS else 1.0
        figures = metrics[name]
        values = [_scaled(figures, key, scale) for key in ("mean", *PERCENTILES)]
        table.add_row(
            title, figure(*values[0]), half_width_text(values[0][1]), *(figure(*value) for value in values[1:])
        )
    return table


def _scaled(figures: dict[str, Any], key: str, scale: float) -> tuple[float | None, float | None]:
    """A figure, and half the width of its interval if it has one."""
    value, interval = figures[key], figures["ci"].get(key)
    return (
        None if value is None else value * scale,
        None if interval is None else (interval[1] - interval[0]) / 2 * scale,
    )


def _bands(summary: dict[str, Any]) -> Table:
    level = summary["pricing"]["band"]["level"]
    table = plain_table(f"{level:.0%} band", "mean", *(f"P{PERCENTILES[name]:g}" for name in STATISTICS[1:]))
    for name in METRICS:
        scale = 1e3 if name in _MILLISECONDS else 1.0
        band = summary["metrics"][name]["band"]
        table.add_row(_NAMES[name], *(_range(band[statistic], scale) for statistic in STATISTICS))
    table.add_row("output tokens/s", _range(summary["throughput"]["band"]["output_tokens_per_s"], 1.0))
    return table


def _range(band: list[float] | None, scale: float) -> str:
    return "-" if band is None else f"{figure(band[0] * scale)} to {figure(band[1] * scale)}"


def _throughput(summary: dict[str, Any]) -> list[str]:
    rates = summary["throughput"]
    if rates["requests_per_s"] is None:
        return ["throughput: no time was simulated"]
    lines = [f"throughput: {', '.join(f'{_rate(rates, name)} {unit}' for name, unit in _RATES.items())}"]
    for name, objective in (summary["slo"] or {}).items():
        if objective["share_within"] is None:
            lines.append(f"objective {name} <= {objective['limit_s']:g} s: no data")
            continue
        verdict = "met" if objective["met"] else "missed"
        share = objective["share_within"]
        lines.append(f"objective {name} <= {objective['limit_s']:g} s: {verdict}, kept by {share:.2%} of requests")
    if summary["slo"]:
        lines.append(f"goodput: {_rate(rates, 'goodput_requests_per_s')} requests/s met all objectives")
    return lines


def _rate(rates: dict[str, Any], name: str) -> str:
    return figure(*_scaled(rates, name, 1.0))


def _resources(summary: dict[str, Any]) -> list[str]:
    kv, use, cost, run = (summary[key] for key in ("kv", "utilisation", "cost", "run"))
    lines = [
        f"KV cache: {kv['capacity_tokens_per_replica']:,} tokens per replica ({kv['source']}), "
        f"at most {kv['peak_used_blocks'] / kv['blocks_per_replica']:.1%} used; "
        f"{summary['preemptions']['total']:,} preemptions"
    ]
    if use["busy_share"] is not None:
        lines.append(
            f"busy {use['busy_share']:.1%} of the time, MFU {use['mfu']:.1%}, MBU {use['mbu']:.1%}, "
            f"{use['mean_decode_batch']:.1f} requests decoding per step"
        )
    if cost["usd_per_million_output_tokens"] is not None:
        lines.append(
            f"cost: {cost['usd_per_h']:.2f} USD/h ({cost['price_source']}), "
            f"{cost['usd_per_million_output_tokens']:.2f} USD per million output tokens"
        )
    lines.append(
        f"simulated {run['simulated_s']:,.1f} s in {run['wall_s']:.2f} s "
        f"({run['requests_per_wall_s']:,.0f} requests per second of wall time)"
    )
    return lines
