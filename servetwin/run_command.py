"""``servetwin run``: simulate a scenario, print its table, leave a run folder."""

import sys
from typing import Annotated, NoReturn

import typer

from experiments.bands.bands import check_replays
from servetwin.api import prepare, run_prepared, save
from servetwin.console import console, say
from servetwin.options import AsJson, Out, Overrides, Quiet, Scenario, folder_of
from servetwin.progress import progress_bar
from servetwin.run_table import print_run
from simcore.core.errors import ServetwinError
from simcore.cost.price_shares import MOST_OUTSIDE
from simcore.metrics.pricing import without_profile
from simcore.output.run_folder import check_destination, summary_text
from simcore.scenario import read_scenario


def run(
    scenario: Scenario,
    set_: Overrides = None,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a run priced by more than 30% outside calibrated ranges.")
    ] = False,
    bands: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="For 80% uncertainty bands: repeat the run so many times, such as 20, with other prices.",
        ),
    ] = 0,
) -> None:
    """Simulate a scenario and write a run folder.

    Prints the headline figures. The folder holds a report to open in a browser; an earlier run there is replaced.
    """
    check_replays("--bands", bands)
    document = read_scenario(scenario)
    folder = folder_of(out, as_json, scenario.stem)
    if folder is not None:
        check_destination(folder)
    simulation = prepare(document, set_ or (), scenario.parent)
    if strict and simulation.cost.prices.profile is None:  # known before the run
        _refuse(1.0, without_profile(simulation.scenario, simulation.accelerator))
    with progress_bar("{task.completed:,} requests", not (as_json or quiet)) as update:
        progress = None if update is None else lambda arrived: update(completed=arrived)
        result = run_prepared(simulation, bands, progress)
    outside = result.summary["pricing"]["outside_calibrated_range"]
    if strict and outside > MOST_OUTSIDE:
        _refuse(outside, f"at most {MOST_OUTSIDE:.0%} may be")
    if folder is not None:
        save(result, folder, scenario.stem)
    if as_json:
        sys.stdout.write(summary_text(result.summary))
    elif not quiet:
        print_run(result, console())
        if folder is not None:
            say(f"Run folder: {folder}\nReport:     {folder / 'report.html'}")


def _refuse(outside: float, why: str) -> NoReturn:
    raise ServetwinError(
        f"{outside:.0%} of simulated time would be priced outside calibrated ranges, which --strict refuses: {why}; "
        "leave --strict out."
    )
