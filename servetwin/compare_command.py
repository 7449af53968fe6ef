"""``servetwin compare``: variants of a scenario on the same requests, held against a baseline."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from experiments.comparison import Plan, PlannedRun, carry_out, evaluate
from experiments.comparison.folder import RUNS, check_comparison_folder, earlier_looks
from experiments.comparison.remarks import foreseen
from servetwin.cli import INTERRUPTED
from servetwin.compare_table import print_comparison
from servetwin.comparing import plan, save_comparison
from servetwin.console import console, say
from servetwin.varied import varied_values
from simcore.core.errors import InputError
from simcore.core.scratch import temporary_folder
from simcore.scenario import read_scenario


def compare(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file (YAML).")],
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=A,B",
            help="Values to compare, such as scheduler.ordering.name=fcfs,sjf; repeatable, for all combinations.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override one value in all variants; repeatable."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Runs of each variant; 6 for two variants, more for several.",
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="VARIANT", help="What the others are held against; the first.")
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(metavar="A,B", help="Metrics to compare, such as ttft_s.p99,requests_per_s.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder to write; runs/NAME-compare of the scenario, none with --json."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON alone.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Runs at a time; one per core.")] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Run on a Ray cluster: its address, or local for one on this machine."),
    ] = None,
) -> None:
    """Compare variants of a scenario on the same requests.

    Prints differences to the baseline with confidence intervals. The folder holds a report to open in a browser and all
    finished runs: after Ctrl-C, the same command goes on where it was.
    """
    document = read_scenario(scenario)
    varied = varied_values(vary or ())
    for assignment in set_ or ():
        key = assignment.partition("=")[0].strip()
        if key in varied:
            raise InputError("--set", assignment, f"a key that --vary does not give values to, as it does to {key}")
    folder = out if out is not None or as_json else Path("runs") / f"{scenario.stem}-compare"
    if folder is not None:
        check_comparison_folder(folder)
    planned = plan(
        document,
        varied,
        seeds,
        baseline,
        None if metrics is None else metrics.split(","),
        set_ or (),
        scenario.parent,
    )
    if not (quiet or as_json):
        for warning in foreseen(planned):  # before the work, not only after it
            print(f"Warning: {warning}", file=sys.stderr)
    with _folder_for_runs(folder) as runs:
        looks = () if folder is None else earlier_looks(planned, folder)
        interrupted = False
        try:
            with _progress_bar(planned, shown=not (as_json or quiet)) as progress:
                reused = carry_out(planned, runs, jobs, progress, ray)
        except KeyboardInterrupt:
            interrupted, reused = True, 0
        comparison = evaluate(planned, runs, looks)
    if len(comparison.missing) == len(planned.runs):
        raise typer.Exit(INTERRUPTED)
    if folder is not None:
        save_comparison(comparison, folder, f"{scenario.stem}: {', '.join(comparison.varied)}")
    if reused and not quiet:
        found = f"{reused} of {len(planned.runs)} runs were there already, of the same scenario, files and code."
        print(found, file=sys.stderr)
    if as_json:
        sys.stdout.write(json.dumps(comparison.document(), indent=2, allow_nan=False) + "\n")
    elif not quiet:
        print_comparison(comparison, console())
        if folder is not None:
            say(f"Folder: {folder}\nReport: {folder / 'report.html'}")
    if interrupted:
        raise typer.Exit(INTERRUPTED)


@contextmanager
def _folder_for_runs(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder / RUNS
        return
    with temporary_folder() as temporary:
        yield temporary


@contextmanager
def _progress_bar(planned: Plan, shown: bool) -> Iterator[Callable[[PlannedRun], None] | None]:
    """Finished runs on standard error, if that is a terminal."""
    terminal = Console(stderr=True)
    if not (shown and terminal.is_terminal):
        yield None
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("runs"), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal, transient=True) as bar:
        task = bar.add_task("", total=len(planned.runs))
        yield lambda run: bar.advance(task)
