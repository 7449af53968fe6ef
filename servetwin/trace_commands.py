"""``servetwin trace``: describe a trace of requests, list and fetch the public ones."""

import dataclasses
import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from servetwin.console import console, plain_table, print_table, say
from servetwin.options import AsJson
from simcore.core.outputs import check_file, is_page
from simcore.workload.describe import PERCENTILES, Distribution, TraceDescription, describe_trace
from simcore.workload.fetch import fetch, known_trace, known_traces
from simcore.workload.traces import Columns, read_trace
from simcore.workload.traces.formats import FORMATS


class Unit(StrEnum):
    """Units of arrival times."""

    S = "s"
    MS = "ms"
    US = "us"
    NS = "ns"
    TIMESTAMP = "timestamp"


def describe_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV, JSONL (either may be .gz) or Parquet.")],
    format: Annotated[str, typer.Option(help="The trace's format; 'auto' tells it from the columns.")] = "auto",
    arrival: Annotated[str | None, typer.Option(help="Column of arrival times.")] = None,
    arrival_unit: Annotated[Unit | None, typer.Option(help="Unit of arrival times.")] = None,
    prompt_tokens: Annotated[str | None, typer.Option(help="Column of prompt lengths.")] = None,
    output_tokens: Annotated[str | None, typer.Option(help="Column of output lengths.")] = None,
    hash_ids: Annotated[str | None, typer.Option(help="Column of the ids of each prompt's blocks.")] = None,
    block_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens of such a block.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a self-contained HTML page with figures.")] = None,
    as_json: AsJson = False,
) -> None:
    """Describe a trace: counts, lengths, gaps, burstiness, reuse."""
    if plot is not None:
        check_file(plot, is_page)
    columns = _columns(arrival, arrival_unit, prompt_tokens, output_tokens, hash_ids)
    trace = read_trace(file, format, columns, sort=True, skip_failed=True, block_tokens=block_tokens)
    description = describe_trace(file, trace)
    if plot is not None:
        from dashboard.trace_plot import write_trace_plot  # plotly takes its time, and only figures need it

        write_trace_plot(trace, file.name, plot)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(description), indent=2))
        return
    output = console()
    print_table(_overview(description), output)
    print_table(_quantiles(description), output)
    if description.burstiness:
        print_table(_burstiness(description), output)
    if plot is not None:
        say(f"Figures: {plot}")


def list_command() -> None:
    """List the public traces that can be fetched."""
    table = plain_table("name", "what", "size (MB)", "licence", justify="left")
    for trace in known_traces().values():
        table.add_row(trace.name, trace.title, f"{trace.bytes / 1e6:.1f}", trace.licence)
    print_table(table, console())


def fetch_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that 'servetwin trace list' shows.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to put it in.")] = Path("traces"),
) -> None:
    """Download a public trace, checked by its SHA-256."""
    trace = known_trace(name)
    path = fetch(trace, out)
    say(f"{path} ({trace.bytes:,} bytes, SHA-256 verified)")
    say(f"Licence: {trace.licence}")
    say(f"Please cite: {trace.citation}")


def _columns(
    arrival: str | None, unit: Unit | None, prompt: str | None, output: str | None, hash_ids: str | None
) -> Columns | None:
    if arrival is unit is prompt is output is hash_ids is None:
        return None
    stated: dict[str, Any] = {
        "arrival": arrival,
        "arrival_unit": None if unit is None else unit.value,
        "prompt_tokens": prompt,
        "output_tokens": output,
        "hash_ids": hash_ids,
    }
    return dataclasses.replace(Columns(), **{name: value for name, value in stated.items() if value is not None})


def _overview(description: TraceDescription) -> Table:
    table = Table(title=escape(description.path), show_header=False)
    table.add_row("format", description.format)
    if (assumed := FORMATS[description.format].notice) is not None:
        table.add_row("assumed", assumed)
    table.add_row("requests", f"{description.requests:,}")
    table.add_row("failed, left out", f"{description.failed:,}")
    table.add_row("out of order", f"{description.out_of_order:,}")
    table.add_row("duration", _number(description.duration_s, " s"))
    table.add_row("mean rate", _number(description.mean_rate_per_s, " requests/s"))
    table.add_row("inter-arrival CV", _number(description.inter_arrival_cv) + "  (1: Poisson)")
    table.add_row("prompt-output rank correlation", _number(description.rank_correlation))
    if description.reusable_share is not None:
        repeated = f"{description.reusable_share:.1%} of prompt tokens, in blocks of {description.block_tokens}"
        table.add_row("hits of a cache without bounds", repeated)
    return table


def _quantiles(description: TraceDescription) -> Table:
    shown = {
        "prompt tokens": description.prompt_tokens,
        "output tokens": description.output_tokens,
        "inter-arrival (s)": description.inter_arrival_s,
    }
    columns = {title: _in_a_row(distribution) for title, distribution in shown.items() if distribution is not None}
    table = Table("", *columns, title="Distributions")
    headings = ("mean", "min", *(f"P{percent}" for percent in PERCENTILES), "max")
    for heading, *values in zip(headings, *columns.values(), strict=True):
        table.add_row(heading, *(_number(value) for value in values))
    return table


def _in_a_row(distribution: Distribution) -> list[float]:
    return [distribution.mean, distribution.min, *distribution.percentiles.values(), distribution.max]


def _burstiness(description: TraceDescription) -> Table:
    table = Table(title="Burstiness of counts per window")
    for heading in ("window", "index of dispersion (1: Poisson)", "peak / mean rate"):
        table.add_column(heading, justify="right")
    for row in description.burstiness:
        table.add_row(f"{row.window_s} s", _number(row.index_of_dispersion), _number(row.peak_to_mean_rate))
    return table


def _number(value: float | None, unit: str = "") -> str:
    if value is None:
        return "–"
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}") + unit
