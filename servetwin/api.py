"""The Python API: simulate a scenario, save its run folder."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from simcore.errors import ServetwinError
from simcore.output.run_folder import write_run_folder
from simcore.result import Result
from simcore.scenario import override, read_scenario
from simcore.simulation import Simulation

__all__ = ["Result", "ServetwinError", "prepare", "save", "simulate"]


def simulate(
    scenario: str | PathLike[str] | Mapping[str, Any],
    *,
    overrides: Sequence[str] = (),
    base_dir: str | PathLike[str] = ".",
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Run a scenario: the path of a YAML file, or the same document as a mapping.

    ``overrides`` are changes such as ``"cluster.replicas=2"``. Files that a mapping names are looked up from
    ``base_dir``, those of a file from its own folder. ``progress`` is called now and then with the number of requests
    that have arrived. Raises ``ServetwinError`` for whatever is wrong with the scenario, before anything runs.
    """
    return prepare(scenario, overrides, base_dir).run(progress)


def prepare(
    scenario: str | PathLike[str] | Mapping[str, Any],
    overrides: Sequence[str] = (),
    base_dir: str | PathLike[str] = ".",
) -> Simulation:
    """Check a scenario and load what it names, without running it; arguments and errors as for ``simulate``."""
    if isinstance(scenario, Mapping):
        document = dict(scenario)
    else:
        document = read_scenario(Path(scenario))
        base_dir = Path(scenario).parent
    return Simulation.prepare(override(document, overrides), Path(base_dir))


def save(result: Result, folder: str | PathLike[str], title: str | None = None) -> Path:
    """Write the run folder, report included, and return its path; an earlier run there is replaced.

    Raises ``ServetwinError`` if the folder holds something else, or cannot be written.
    """
    from dashboard.report import render_report  # plotly takes its time, and a simulation alone does not need it

    path = Path(folder)
    write_run_folder(result, path, render_report(result, title or path.absolute().name))
    return path
