"""The rows of a sweep in the few columns that a terminal has room for."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from dashboard.formatting import number, seconds
from experiments.settings import label_of
from experiments.sweep.cell_run import Row
from servetwin.console import plain_table, print_table

_SHOWN = {
    "ttft_s.p99": ("P99 TTFT", seconds),
    "tpot_s.p99": ("P99 TPOT", seconds),
    "throughput.goodput_requests_per_s": ("goodput (requests/s)", number),
    "cost.usd_per_h": ("USD/h", number),
}
_MOST_ROWS = 40


def print_rows(rows: Sequence[Row], varied: Sequence[str], to_knee: bool, output: Console) -> None:
    """Print a row for each run, or for each knee; of many the first ones. Below stands which cells could not run."""
    shown = [row for row in rows if (not to_knee or row.get("knee")) and "error" not in row]
    failed = [row for row in rows if "error" in row]
    names = [key.rpartition(".")[2] if key.count(".") else key for key in varied]
    table = plain_table("cell", *names, *(("knee (rate)",) if to_knee else ()), *(name for name, _ in _SHOWN.values()))
    for row in shown[:_MOST_ROWS]:
        cells = [str(row["cell"]), *(escape(_worded(row.get(key))) for key in varied)]
        if to_knee:
            cells.append(number(row.get("rate")))
        table.add_row(*cells, *(wording(row.get(key)) for key, (_, wording) in _SHOWN.items()))
    print_table(table, output)
    if len(shown) > _MOST_ROWS:
        output.print(f"and {len(shown) - _MOST_ROWS:,} more rows in the table")
    for row in failed[:_MOST_ROWS]:
        output.print(escape(f"cell {row['cell']}, {label_of({key: row[key] for key in varied})}: {row['error']}"))


def _worded(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
