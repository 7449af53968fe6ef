"""``servetwin sweep``: a scenario over many settings, each cell run once, all of them in one table."""

import json
import sys
from contextlib import closing
from typing import Annotated

import typer

from experiments.runners import runner_of
from experiments.settings import label_of
from experiments.sweep.design import cells_of
from experiments.sweep.execution import TABLE, carry_out, check_sweep_folder
from servetwin.console import console, say
from servetwin.options import AsJson, Jobs, Out, Overrides, Quiet, Ray, Scenario, folder_of, place_of
from servetwin.progress import progress_bar
from servetwin.sweep_table import print_rows
from servetwin.varied import varied_values
from simcore.scenario import override, read_scenario


def sweep(
    scenario: Scenario,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=A,B",
            help="Values of a key; repeatable, for all combinations. With --random also ranges: 5..50, log:1..100.",
        ),
    ] = None,
    set_: Overrides = None,
    random: Annotated[
        int | None, typer.Option(metavar="N", help="Draw N points by a Latin hypercube instead of all combinations.")
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", help="Runs of each cell, with seeds counted up.")] = 1,
    to_knee: Annotated[
        bool, typer.Option("--to-knee", help="Raise the rate of each cell until its limits do not hold any more.")
    ] = False,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    jobs: Jobs = None,
    ray: Ray = None,
) -> None:
    """Run a scenario over many settings, into one table.

    The folder holds sweep.parquet, a row for each run, and the finished cells: after an interruption of any kind, the
    same command goes on where it was.
    """
    folder = folder_of(out, as_json, f"{scenario.stem}-sweep")
    if folder is not None:
        check_sweep_folder(folder)
    document = override(read_scenario(scenario), set_ or ())
    mode = "knee" if to_knee else "run"
    cells = cells_of(document, scenario.parent, varied_values(vary or ()), random, seeds, mode)
    with (
        place_of(folder) as place,
        closing(runner_of(jobs, ray, most=len(cells))) as runner,
        progress_bar("cells, {task.fields[latest]}", not (as_json or quiet), len(cells), latest="") as update,
    ):
        told = None if update is None else lambda cell: update(advance=1, latest=label_of(cell.setting))
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
