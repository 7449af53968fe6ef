"""``servetwin compare``: variants of a scenario on the same requests, held against a baseline."""

import json
import sys
from typing import Annotated

import typer

from experiments.comparison import carry_out, evaluate
from experiments.comparison.folder import RUNS, check_comparison_folder, earlier_looks
from experiments.comparison.remarks import foreseen
from servetwin.cli import INTERRUPTED
from servetwin.compare_table import print_comparison
from servetwin.comparing import plan, save_comparison
from servetwin.console import console, say
from servetwin.options import AsJson, Jobs, Out, Overrides, Quiet, Ray, Scenario, folder_of, place_of
from servetwin.progress import progress_bar
from servetwin.varied import varied_values
from simcore.core.errors import InputError
from simcore.scenario import read_scenario


def compare(
    scenario: Scenario,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=A,B",
            help="Values to compare, such as scheduler.ordering.name=fcfs,sjf; repeatable, for all combinations.",
        ),
    ] = None,
    set_: Overrides = None,
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
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    jobs: Jobs = None,
    ray: Ray = None,
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
    folder = folder_of(out, as_json, f"{scenario.stem}-compare")
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
    with place_of(None if folder is None else folder / RUNS) as runs:
        looks = () if folder is None else earlier_looks(planned, folder)
        interrupted = False
        try:
            with progress_bar("runs", not (as_json or quiet), len(planned.runs)) as update:
                progress = None if update is None else lambda run: update(advance=1)
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
