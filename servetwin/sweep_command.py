"""``servetwin sweep``: a scenario over many settings, each cell run once, all of them in one table."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.runners import runner_of
from experiments.settings import label_of
from experiments.sweep.design import Cell, cells_of
from experiments.sweep.execution import TABLE, carry_out, check_sweep_folder
from servetwin.console import console, say
from servetwin.sweep_table import print_rows
from servetwin.varied import varied_values
from simcore.core.scratch import temporary_folder
from simcore.scenario import override, read_scenario


def sweep(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file (YAML).")],
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=A,B",
            help="Values of a key; repeatable, for all combinations. With --random also ranges: 5..50, log:1..100.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override one value; repeatable.")
    ] = None,
    random: Annotated[
        int | None, typer.Option(metavar="N", help="Draw N points by a Latin hypercube instead of all combinations.")
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", help="Runs of each cell, with seeds counted up.")] = 1,
    to_knee: Annotated[
        bool, typer.Option("--to-knee", help="Raise the rate of each cell until its limits do not hold any more.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder to write; runs/NAME-sweep of the scenario, none with --json."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON alone.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Cells at a time; one per core.")] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on a Ray cluster: its address, or local for one on this machine."),
    ] = None,
) -> None:
    """Run a scenario over many settings, into one table.

    The folder holds sweep.parquet, a row for each run, and the finished cells: after an interruption of any kind, the
    same command goes on where it was.
    """
    folder = out if out is not None or as_json else Path("runs") / f"{scenario.stem}-sweep"
    if folder is not None:
        check_sweep_folder(folder)
    document = override(read_scenario(scenario), set_ or ())
    mode = "knee" if to_knee else "run"
    cells = cells_of(document, scenario.parent, varied_values(vary or ()), random, seeds, mode)
    with (
        _place(folder) as place,
        closing(runner_of(jobs, ray, most=len(cells))) as runner,
        _progress_bar(len(cells), shown=not (as_json or quiet)) as told,
    ):
        rows, reused = carry_out(cells, place, runner, to_knee, told)
    if reused and not quiet:
        found = f"{reused} of {len(cells)} cells were there already, of the same scenario, files and code."
        print(found, file=sys.stderr)
    if as_json:
        sys.stdout.write(json.dumps(rows, indent=2, allow_nan=False) + "\n")
    elif not quiet:
        print_rows(rows, [*cells[0].setting], to_knee, console())
        if folder is not None:
            say(f"Table: {folder / TABLE}")


@contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    with temporary_folder() as temporary:
        yield temporary


@contextmanager
def _progress_bar(cells: int, shown: bool) -> Iterator[Callable[[Cell], None] | None]:
    """Finished cells on standard error, if that is a terminal."""
    terminal = Console(stderr=True)
    if not (shown and terminal.is_terminal):
        yield None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("cells, {task.fields[latest]}"), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=terminal, transient=True) as bar:
        task = bar.add_task("", total=cells, latest="")
        yield lambda cell: bar.update(task, advance=1, latest=label_of(cell.setting))
