"""``servetwin live``: run a scenario on the live engine, in real time, and leave a run folder."""

import sys

import typer

from servetwin.api import save
from servetwin.console import console
from servetwin.live_options import (
    Device,
    Dtype,
    Threads,
    Weights,
    machine_of,
    settings_of,
    setup_of,
)
from servetwin.options import AsJson, Out, Overrides, Quiet, Scenario, folder_of
from servetwin.run_table import print_run
from simcore.output.run_folder import check_destination, summary_text
from simcore.scenario import override, read_scenario


def live(
    scenario: Scenario,
    set_: Overrides = None,
    device: Device = "cpu",
    weights: Weights = None,
    dtype: Dtype = None,
    threads: Threads = None,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run a scenario on the live engine: a real model, in real time.

    Policies and arrivals are those of a simulation, tokens are made up, and the folder is that of ``servetwin run``.
    Ctrl-C ends the run after the step in progress and leaves what there is, marked partial.
    """
    from live.engine.workload_run import run_workload

    document = override(read_scenario(scenario), set_ or ())
    folder = folder_of(out, as_json, f"{scenario.stem}-live")
    if folder is not None:
        check_destination(folder)
    setup = setup_of(document, scenario.parent, weights, settings_of(device, dtype, threads))
    run = run_workload(setup, machine=machine_of(setup))
    if folder is not None:
        save(run.result, folder, f"{scenario.stem} (live)")
    if as_json:
        sys.stdout.write(summary_text(run.result.summary))
    elif not quiet:
        print_run(run.result, console())
        if folder is not None:
            typer.echo(f"Run folder: {folder}\nReport:     {folder / 'report.html'}")
