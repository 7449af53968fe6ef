"""``servetwin validate``: run a scenario live, simulate the same arrivals, and tell the difference."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from dashboard.live_report import render_live_report
from fidelity.calibrations import open_calibration
from fidelity.live_regimes import regimes_of
from fidelity.live_validation import RegimeCompared, compare_live
from fidelity.measured_cost import at_measured_prices
from fidelity.step_prices import StepPrices
from servetwin.clock_names import ClockName, measuring_clock
from servetwin.console import console, plain_table, print_table
from servetwin.live_options import (
    Device,
    Dtype,
    Threads,
    Weights,
    machine_of,
    settings_of,
    setup_of,
)
from servetwin.options import Overrides, Scenario
from simcore.build.simulation import Simulation
from simcore.core.outputs import FolderKind, begins_with, check_folder, is_page, replace_folder
from simcore.core.result import Result
from simcore.scenario import override, read_scenario

_TABLE, _DOCUMENT, _REPORT = "steps.csv", "validation.json", "report.html"
VALIDATION = FolderKind(
    "a validation",
    (_DOCUMENT,),
    {
        _TABLE: begins_with(b"start_ns,"),
        _DOCUMENT: begins_with(b'{\n  "validation_schema": '),
        _REPORT: is_page,
    },
)
_DISTURBED = 0.03
"""The share of the steps' time that other work may take before it is told."""
_SHOWN = (("step_s", "p50"), ("output_tokens_per_s", "mean"), ("ttft_s", "p50"), ("tpot_s", "p50"), ("e2e_s", "p50"))


def validate(
    scenario: Scenario,
    set_: Overrides = None,
    device: Device = "cpu",
    weights: Weights = None,
    dtype: Dtype = None,
    threads: Threads = None,
    most_tokens: Annotated[
        int, typer.Option(metavar="N", help="The most prompt tokens of one of the measurements that prices come from.")
    ] = 4096,
    profile: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Prices of this calibration's folder, instead of measured steps.")
    ] = None,
    clock: Annotated[
        ClockName,
        typer.Option(
            help="real; busy, which skips waits; cpu, which counts what the own thread computes alone; or steady, "
            "which is cpu's, corrected for a machine whose speed changes."
        ),
    ] = ClockName.REAL,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder to write; runs/NAME-validation.")] = None,
) -> None:
    """Hold the simulator against the live engine, on this machine.

    Measures a table of steps, then runs the scenario live under several loads, each with arrivals of its own, and
    simulates the same. Decisions are replayed by the live clock and must be equal: the exit code is 1 if any differs.
    """
    folder = out or Path("runs") / f"{scenario.stem}-validation"
    check_folder(folder, VALIDATION)
    document = override(read_scenario(scenario), set_ or ())
    settings = settings_of(device, dtype, threads)
    validated = validate_scenario(document, scenario.parent, weights, settings, most_tokens, profile, clock)
    text = render_live_report(f"{scenario.stem}: live and simulated", validated.regimes, validated.about)
    replace_folder(folder, VALIDATION, lambda new: write_validation(validated, new, text))
    _print(validated.regimes)
    typer.echo(f"Validation: {folder}\nReport:     {folder / _REPORT}")
    if any(regime.difference is not None for regime in validated.regimes):
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class Validated:
    """What a validation found: the table of steps, a comparison under each load, and what was run.

    At the prices of a calibration, ``by_table`` are the same live runs held against those of the table.
    """

    table: dict[str, Any]
    regimes: list[RegimeCompared]
    about: dict[str, str]
    by_table: list[RegimeCompared]


def validate_scenario(
    document: Mapping[str, Any],
    base_dir: Path,
    weights: str | None,
    settings: Any,
    most_tokens: int,
    profile: Path | None = None,
    clock: ClockName = ClockName.REAL,
) -> Validated:
    """Measure, run live under each load, simulate, compare.

    Prices are those of a table of steps, or of the calibration in the folder ``profile``.
    """
    from live.engine.setup import live_document
    from live.engine.step_table import measured_steps
    from live.engine.step_times import PARTS
    from live.engine.wall_clock import BusyTime
    from live.engine.workload_run import run_workload
    from live.measuring.machine import facts
    from live.measuring.passes import PassProbe
    from servetwin.operator_errors import operator_errors

    setup = setup_of(dict(document), base_dir, weights, settings)
    spec, machine = setup.simulation.spec, machine_of(setup)
    if profile is not None:
        used = open_calibration(profile, facts(settings.device, settings.number_format))
        document = used.described(document)
    timed_by = measuring_clock(clock, settings.device, profile)

    def time() -> BusyTime | None:
        return None if clock is ClockName.REAL else BusyTime(timed_by)

    probe = PassProbe(setup.runner, timed_by)
    table = measured_steps(setup, most_tokens=most_tokens, time=time())
    prices = StepPrices.fit(table)

    def prepared(described: Mapping[str, Any]) -> Simulation:
        return Simulation.prepare(live_document(described, setup.runner.config, settings), base_dir, spec)

    def simulated(described: Mapping[str, Any]) -> Result:
        return at_measured_prices(prepared(described), prices).run()

    burst = simulated(document).requests
    longest = int((burst["prompt_tokens"] + burst["output_tokens"]).max())
    block_size = setup.simulation.scenario.memory.block_size_tokens
    compared: dict[bool, list[RegimeCompared]] = {True: [], False: []}
    for name, described in regimes_of(document, simulated, -(-longest // block_size)).items():
        simulation = prepared(described)
        before = len(timed_by.slowness) if clock is ClockName.STEADY else 0
        run = run_workload(setup.of(simulation), machine=machine, time=time())
        for by_table in (True,) if profile is None else (True, False):
            found = run.result, run.steps, run.plans, table, PARTS, by_table, run.disturbed_share
            regime = compare_live(name, simulation, *found)
            if clock is ClockName.STEADY:
                slowness = float(np.median(timed_by.slowness[before:] or timed_by.slowness))
                regime = replace(regime, slowness=slowness, disturbed_share=None)
            if not by_table:
                regime = replace(regime, operators=operator_errors(probe, simulation.cost, run.steps))
            compared[by_table].append(regime)
        if run.partial:
            break
    about = {
        "prices": "a table of measured steps" if profile is None else f"the calibration in {profile}",
        "clock": str(clock),
        "model": spec.name,
        "machine": machine,
        "steps measured for prices": f"{len(table['step_ns']):,}",
    }
    return Validated(table, compared[profile is None], about, compared[True] if profile is not None else [])


def write_validation(validated: Validated, folder: Path, report: str) -> None:
    """The table of steps, all figures, and the report."""
    names = list(validated.table)
    rows = np.column_stack([validated.table[name] for name in names])
    lines = [",".join(names), *(",".join(map(str, row)) for row in rows.tolist())]
    (folder / _TABLE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    document = {
        "validation_schema": 1,
        "about": validated.about,
        "regimes": [regime.document() for regime in validated.regimes],
        "regimes_by_table_of_steps": [regime.document() for regime in validated.by_table],
    }
    (folder / _DOCUMENT).write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    (folder / _REPORT).write_text(report, encoding="utf-8")


def _print(regimes: list[RegimeCompared]) -> None:
    to = console()
    table = plain_table(
        "load", "plans", "decisions", *(f"{metric.removesuffix('_s')} {statistic}" for metric, statistic in _SHOWN)
    )
    for regime in regimes:
        errors = [regime.error(*shown) for shown in _SHOWN]
        decisions = "equal" if regime.difference is None else "differ"
        table.add_row(
            regime.name,
            f"{regime.plans:,}",
            decisions,
            *("-" if error is None else f"{error:+.1%}" for error in errors),
        )
    print_table(table, to)
    for regime in regimes:
        if (regime.disturbed_share or 0.0) > _DISTURBED:
            to.print(
                f"{regime.name}: other work took {regime.disturbed_share:.0%} of the steps' time; errors are not the "
                "simulator's alone. Validate on a quiet machine, or with --clock cpu.",
                soft_wrap=True,
            )
        if regime.difference is not None:
            to.print(f"{regime.name}: {regime.difference}", soft_wrap=True)
