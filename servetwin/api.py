"""The Python API: simulate a scenario and save its run folder. What is slow to import is imported where it is used."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from servetwin.arguments import check_callable, check_result, is_document, path_of, replays_of, texts_of
from simcore.build.simulation import Simulation
from simcore.core.result import Result
from simcore.output.run_folder import write_run_folder
from simcore.scenario import override, read_scenario


def simulate(
    scenario: str | PathLike[str] | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    base_dir: str | PathLike[str] = ".",
    progress: Callable[[int], None] | None = None,
    bands: int = 0,
) -> Result:
    """Run a scenario: the path of a YAML file, or the same document as a mapping.

    ``overrides`` are changes such as ``"cluster.replicas=2"``. Files that a mapping names are looked up from
    ``base_dir``, those of a file from its own folder. ``progress`` is called now and then with the number of requests
    that have arrived. With ``bands``, 20 for example, the run is repeated so many times with prices that may be the
    true ones, and the summary has the 80% uncertainty bands of its main figures. Raises ``ServetwinError`` for whatever
    is wrong with the scenario, before anything runs.
    """
    check_callable("progress", progress)
    replays = replays_of("bands", bands)
    return run_prepared(prepare(scenario, overrides, base_dir), replays, progress)


def prepare(
    scenario: str | PathLike[str] | Mapping[str, Any],
    overrides: Sequence[str] = (),
    base_dir: str | PathLike[str] = ".",
) -> Simulation:
    """Check a scenario and load what it names, without running it; arguments and errors as for ``simulate``."""
    document, place = document_of(scenario, overrides, base_dir)
    return Simulation.prepare(document, place)


def run_prepared(simulation: Simulation, replays: int, progress: Callable[[int], None] | None = None) -> Result:
    """Run what ``prepare`` returned, and again ``replays`` times for its bands; 0 is none."""
    if replays == 0:
        return simulation.run(progress)
    from experiments.bands.run import run_with_bands

    return run_with_bands(simulation, replays, progress)


def document_of(
    scenario: str | PathLike[str] | Mapping[str, Any], overrides: Sequence[str], base_dir: str | PathLike[str]
) -> tuple[dict[str, Any], Path]:
    """The scenario with its overrides, and the folder from which it names files."""
    overrides = texts_of("overrides", overrides, "KEY=VALUE")
    if is_document(scenario):
        return override(scenario, overrides), path_of("base_dir", base_dir)
    path = path_of("scenario", scenario)
    return override(read_scenario(path), overrides), path.parent


def save(result: Result, folder: str | PathLike[str], title: str | None = None) -> Path:
    """Write the run folder, report included, and return its path; an earlier run there is replaced.

    Raises ``ServetwinError`` if the folder holds something else, or cannot be written.
    """
    from dashboard.report import render_report

    check_result(result)
    path = path_of("folder", folder)
    write_run_folder(result, path, render_report(result, title or path.absolute().name))
    return path
