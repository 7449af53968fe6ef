"""What ``servetwin compare`` prints: a line per metric and variant."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dashboard.comparison_wording import probability, relative, scale_of, seeds_in_words, short_names
from experiments.comparison import Comparison, Row
from servetwin.console import plain_table, print_table

_STYLES = {"better": "green", "worse": "red"}


def print_comparison(comparison: Comparison, console: Console) -> None:
    """Print values, differences and how sure they are, then how to read them and what to be warned of."""
    names = short_names(comparison.variants)
    console.print(
        f"[bold]{escape(', '.join(comparison.varied))}[/]: {len(comparison.variants)} variants against "
        f"[bold]{escape(names[comparison.baseline])}[/], {seeds_in_words(comparison.seeds)}",
        soft_wrap=True,
    )
    for label, name in names.items():
        if name != label:
            console.print(f"  [bold]{name}[/] {escape(label)}", soft_wrap=True)
    by_metric = list(comparison.by_metric())
    everywhere = [f"{rows[0].title} {scale_of(rows).with_unit(rows[0].value)}" for rows in by_metric if _same(rows)]
    if len(everywhere) < len(by_metric):
        print_table(_table(comparison, names), console)
    if everywhere:
        console.print(f"The same for all: {', '.join(everywhere)}", soft_wrap=True)
    console.print(f"Method: {escape(comparison.method)}", soft_wrap=True)
    for warning in comparison.warnings:
        console.print(f"[yellow]Warning:[/] {escape(warning)}", soft_wrap=True)
    for notice in comparison.notices:
        console.print(f"Notice: {escape(notice)}", soft_wrap=True)


def _same(rows: Sequence[Row]) -> bool:
    return all(row.verdict in ("baseline", "same") for row in rows)


def _table(comparison: Comparison, names: Mapping[str, str]) -> Table:
    table = plain_table("", "value", "difference", "95% interval", "relative", "p (Holm)", "")
    for rows in comparison.by_metric():
        if _same(rows):
            continue
        scale = scale_of(rows)
        table.add_row(f"[bold]{rows[0].title} ({scale.unit})[/]")
        for row in rows:
            cells = (f"  {escape(names[row.variant])}", scale.value(row.value))
            if row.verdict == "baseline":
                table.add_row(*cells, row.verdict, "", "", "", "")
                continue
            figures = (scale.difference(row), scale.interval(row), relative(row), probability(row.p_holm))
            style = _STYLES.get(row.verdict)
            table.add_row(*cells, *figures, f"[{style}]{row.verdict}[/]" if style else row.verdict)
    return table
