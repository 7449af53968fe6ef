"""What ``servetwin run`` prints: the headline figures of a result."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dashboard.digits import figure, half_width_text
from experiments.bands.bands import STATISTICS
from servetwin.console import plain_table, print_table
from simcore.core.result import Result
from simcore.metrics.definitions import PERCENTILES
from simcore.metrics.metric import Figure, Latency, Rate
from simcore.metrics.registry import latencies, lines
from simcore.output.cluster_text import replicas_of, replicas_seen

_MOST_TENANTS = 10
"""Tenants that are printed, those with the most requests."""
_POOL_SHARES = ("busy", "most KV used", "prefix hits")


def print_run(result: Result, console: Console) -> None:
    """Print counts, latencies, throughput and whatever the reader should be warned of."""
    summary = result.summary
    console.print(_title(result), soft_wrap=True)
    print_table(_latencies(summary["metrics"]), console)
    if "band" in summary["pricing"]:
        print_table(_bands(summary), console)
    for line in (*_objectives(summary), *_figures(summary), _speed(summary["run"])):
        console.print(line, soft_wrap=True)
    if summary["fairness"]:
        print_table(_tenants(summary["fairness"]), console)
    if "pools" in summary:
        print_table(_pools(summary["pools"]), console)
    if "faults" in summary:
        console.print(_faults(summary["faults"]))
    if "groups" in summary:
        for line in _groups(summary["groups"]):
            console.print(line, soft_wrap=True)
    for update in summary.get("updates", ()):
        console.print(_update(update))
    if "scaling" in summary:
        console.print(_scaling(summary), soft_wrap=True)
    if summary["slo"]:
        console.print(_service(summary["service"]), soft_wrap=True)
    if "handover" in summary:
        console.print(_handover(summary["handover"]), soft_wrap=True)
    if "migration" in summary:
        console.print(_migration(summary["migration"]), soft_wrap=True)
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
    for latency in latencies():
        found = [_scaled(metrics[latency.name], key, _scale(latency)) for key in ("mean", *PERCENTILES)]
        mean, *others = (figure(*value) for value in found)
        table.add_row(_named(latency), mean, half_width_text(found[0][1]), *others)
    return table


def _scaled(figures: dict[str, Any], key: str, scale: float) -> tuple[float | None, float | None]:
    """A figure, and half the width of its interval if it has one."""
    value, interval = figures[key], (figures["ci"] or {}).get(key)
    return (
        None if value is None else value * scale,
        None if interval is None else (interval[1] - interval[0]) / 2 * scale,
    )


def _scale(latency: Latency) -> float:
    return 1e3 if latency.in_ms else 1.0


def _named(latency: Latency) -> str:
    return f"{latency.short} ({'ms' if latency.in_ms else 's'})"


def _bands(summary: dict[str, Any]) -> Table:
    level = summary["pricing"]["band"]["level"]
    table = plain_table(f"{level:.0%} band", "mean", *(f"P{PERCENTILES[name]:g}" for name in STATISTICS[1:]))
    for latency in latencies():
        if latency.banded:
            band = summary["metrics"][latency.name]["band"]
            table.add_row(_named(latency), *(_range(band[statistic], _scale(latency)) for statistic in STATISTICS))
    table.add_row("output tokens/s", _range(summary["throughput"]["band"]["output_tokens_per_s"], 1.0))
    return table


def _range(band: list[float] | None, scale: float) -> str:
    return "-" if band is None else f"{figure(band[0] * scale)} to {figure(band[1] * scale)}"


def _objectives(summary: dict[str, Any]) -> list[str]:
    found = []
    for name, objective in (summary["slo"] or {}).items():
        limit = f"objective {name} <= {objective['limit_s']:g} s"
        if objective["share_within"] is None:
            found.append(f"{limit}: no data")
            continue
        verdict = "met" if objective["met"] else "missed"
        found.append(f"{limit}: {verdict}, kept by {objective['share_within']:.2%} of requests")
    return found


def _figures(summary: dict[str, Any]) -> list[str]:
    """A line for each line of the table of metrics that has anything to say."""
    kv = summary["kv"]
    before = {}
    if kv["capacity_tokens_per_replica"] is not None and kv["blocks_per_replica"] is not None:
        before["KV cache"] = (
            f"{kv['capacity_tokens_per_replica']:,} tokens per replica ({kv['source']}), "
            f"at most {kv['peak_used_blocks'] / kv['blocks_per_replica']:.1%} used"
        )
    after = {"cost": f" ({summary['cost']['price_source']})"}
    found = []
    for line, figures in lines():
        words = [text for metric in figures if (text := _worded(metric, summary)) is not None]
        if words:
            first = [before[line]] if line in before else []
            found.append(f"{line}: {', '.join([*first, *words])}{after.get(line, '')}")
    return found


def _worded(metric: Figure, summary: dict[str, Any]) -> str | None:
    """A figure as its row words it, a rate with the digits that its interval supports; None without either."""
    value = metric.of_summary(summary)
    if value is None or not metric.wording:
        return None
    if isinstance(metric, Rate):
        return metric.wording.format(figure(*_scaled(summary["throughput"], metric.name, 1.0)))
    return metric.wording.format(value)


def _tenants(fairness: dict[str, Any]) -> Table:
    """The tenants with the most requests."""
    table = plain_table(
        "tenant", "requests", "finished", "TTFT mean (s)", "TTFT P99 (s)", "E2E mean (s)", "in limits", "service/s"
    )
    tenants = sorted(fairness["tenants"].items(), key=lambda item: (-item[1]["requests"], item[0]))
    for name, tenant in tenants[:_MOST_TENANTS]:
        kept = tenant["slo_attainment"]
        table.add_row(
            escape(name or "(unnamed)"),
            f"{tenant['requests']:,}",
            f"{tenant['finished']:,}",
            *(figure(tenant[key]) for key in ("mean_ttft_s", "p99_ttft_s", "mean_e2e_s")),
            "-" if kept is None else f"{kept:.2%}",
            f"{tenant['service_per_s']:,.0f}",
        )
    if len(tenants) > _MOST_TENANTS:
        table.caption = f"the {_MOST_TENANTS} with the most requests, of {len(tenants):,} tenants"
    return table


def _pools(pools: dict[str, Any]) -> Table:
    """What each pool did."""
    table = plain_table("pool", "replicas", "requests", "TTFT mean (s)", "TTFT P99 (s)", *_POOL_SHARES, "USD/h")
    for name, pool in pools.items():
        used = pool["kv"]["peak_used_blocks"] / pool["kv"]["blocks_per_replica"]
        busy, hit_rate = pool["utilisation"]["busy_share"], pool["kv"]["prefix_hit_rate"]
        table.add_row(
            escape(name),
            f"{replicas_seen(pool)} × {pool['devices_per_replica']} {pool['accelerator']}",
            f"{pool['requests']:,}",
            *(figure(pool["ttft_s"][key]) for key in ("mean", "p99")),
            *("-" if share is None else f"{share:.1%}" for share in (busy, used, hit_rate)),
            f"{pool['usd_per_h']:.2f}",
        )
    return table


def _faults(figures: dict[str, Any]) -> str:
    """What went wrong."""
    return (
        f"faults: {_counted(event['name'] for event in figures['events'])}; {figures['replica_down_s']:,.1f} s of a "
        "replica down, "
        f"{figures['interrupted_requests']:,} requests interrupted, {figures['given_up_requests']:,} given up"
    )


def _groups(figures: dict[str, Any]) -> Iterator[str]:
    """Each pool that users were assigned to, against the first."""
    names = iter(figures)
    first = next(names)
    for name in names:
        good, ttft_s = (figures[name][f"{key}_difference"] for key in ("good", "ttft_s"))
        share = "-" if good is None else f"{good['value']:+.2%} ({good['low']:+.2%} to {good['high']:+.2%})"
        ms = "-" if ttft_s is None else " to ".join(f"{1000 * ttft_s[end]:+.1f}" for end in ("low", "high"))
        yield (
            f"{escape(name)} against {escape(first)}: {figures[name]['requests']:,} and {figures[first]['requests']:,} "
            f"requests; good ones {share}, mean TTFT {ms} ms (95%): {figures[name]['verdict']}"
        )


def _update(figures: dict[str, Any]) -> str:
    """How an update went."""
    ready = "-" if figures["ready_s"] is None else f"{figures['ready_s']:,.1f}"
    return (
        f"update: {figures['name']}, {figures['updated_replicas']} of {figures['replicas']} replicas, "
        f"from {figures['at_s']:,.1f} to {ready} s; {figures['extra_replica_s']:,.1f} s of replicas beside them"
    )


def _counted(names: Iterable[str]) -> str:
    """Each name with how often it comes."""
    return ", ".join(f"{count:,} {name}" for name, count in sorted(Counter(names).items()))


def _scaling(summary: dict[str, Any]) -> str:
    """How replicas came and went, and what that cost."""
    figures, cost = summary["scaling"], summary["cost"]
    reclaimed = (
        f"; {figures['reclaimed']:,} instances taken back, {figures['interrupted_requests']:,} requests interrupted"
        if figures["reclaimed"]
        else ""
    )
    per_request = cost["usd_per_good_request"]
    price = "" if per_request is None else f", {figure(per_request)} USD per successful request"
    range_of, starts = f"{figures['least_replicas']:,} to {figures['most_replicas']:,}", figures["starts"]
    mean, start = summary["service"]["mean_replicas"], f" of {figure(figures['start_s']['mean'])} s" if starts else ""
    return (
        f"replicas: {range_of}, {mean:.2f} on average; {starts:,} cold starts{start}, {figures['wakes']:,} wakes"
        f"{reclaimed}; {cost['usd']:.4g} USD{price}"
    )


def _service(figures: dict[str, Any]) -> str:
    """How the error budget went."""
    shares, spent = figures["regime_shares"], figures["error_budget_spent"]
    regimes = ", ".join(f"{name} {share:.0%}" for name, share in shares.items() if share is not None)
    return f"error budget: {'no data' if spent is None else f'{spent:.1%} spent'}; {regimes or 'no data'} of the time"


def _handover(figures: dict[str, Any]) -> str:
    """What moving KV from pool to pool took."""
    room, transfer = (figures[key] for key in ("room_wait_s", "transfer_wait_s"))
    return (
        f"handover: {figures['requests']:,} requests, {figures['bytes'] / 1e9:,.4g} GB; first token to room "
        f"{figure(room['mean'])} s mean, {figure(room['p99'])} s P99; then to the last byte of KV "
        f"{figure(transfer['mean'])} s mean, {figure(transfer['p99'])} s P99; {figures['recomputed']:,} computed again"
    )


def _migration(figures: dict[str, Any]) -> str:
    """What moving running requests took."""
    copied, stopped = (figures[key] for key in ("copy_s", "stop_s"))
    return (
        f"migration: {figures['moves']:,} moves of {figures['requests']:,} requests, {figures['bytes'] / 1e9:,.4g} GB; "
        f"copied for {figure(copied['mean'])} s mean, stopped for {figure(stopped['mean'])} s mean, "
        f"{figure(stopped['p99'])} s P99; {sum(figures['called_off_by_reason'].values()):,} called off"
    )


def _speed(run: dict[str, Any]) -> str:
    return (
        f"simulated {run['simulated_s']:,.1f} s in {run['wall_s']:.2f} s "
        f"({run['requests_per_wall_s']:,.0f} requests per second of wall time)"
    )
