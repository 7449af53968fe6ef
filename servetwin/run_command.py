"""``servetwin run``: simulate a scenario, print its table, leave a run folder."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from experiments.bands.bands import check_replays
from servetwin.api import prepare, run_prepared, save
from servetwin.console import console, say
from servetwin.run_table import print_run
from simcore.core.errors import ServetwinError
from simcore.cost.price_shares import MOST_OUTSIDE
from simcore.metrics.pricing import without_profile
from simcore.output.run_folder import check_destination, summary_text
from simcore.scenario import read_scenario


def run(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A scenario file (YAML).")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override one value, such as cluster.replicas=2; repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The run folder to write; runs/NAME of the scenario, or none with --json."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print summary.json alone.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
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
    folder = out if out is not None or as_json else Path("runs") / scenario.stem
    if folder is not None:
        check_destination(folder)
    simulation = prepare(document, set_ or (), scenario.parent)
    if strict and simulation.cost.prices.profile is None:  # known before the run
        _refuse(1.0, without_profile(simulation.scenario, simulation.accelerator))
    with _progress_bar(shown=not (as_json or quiet)) as progress:
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


@contextmanager
def _progress_bar(shown: bool) -> Iterator[Callable[[int], None] | None]:
    """A count of arrived requests on standard error, if that is a terminal."""
    terminal = Console(stderr=True)
    if not (shown and terminal.is_terminal):
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("simulating"), BarColumn(), TextColumn("{task.completed:,} requests"), TimeElapsedColumn())
    with Progress(*columns, console=terminal, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda arrived: bar.update(task, completed=arrived)
