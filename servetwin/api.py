"""The Python API: simulate a scenario, save its run folder, compare variants."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from experiments.bands.run import run_with_bands
from experiments.comparison import Comparison, Plan, PlannedRun, carry_out, evaluate, plan_comparison
from experiments.comparison.folder import RUNS, check_comparison_folder, earlier_looks, write_comparison
from servetwin.arguments import (
    check_callable,
    check_result,
    is_document,
    path_of,
    replays_of,
    texts_of,
    values_by_key,
    whole_number_of,
)
from simcore.build.simulation import Simulation
from simcore.core.errors import InputError, ServetwinError
from simcore.core.result import Result
from simcore.output.run_folder import write_run_folder
from simcore.scenario import override, read_scenario

__all__ = ["Comparison", "Result", "ServetwinError", "compare", "prepare", "save", "simulate"]


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
    return run_with_bands(prepare(scenario, overrides, base_dir), replays, progress)


def prepare(
    scenario: str | PathLike[str] | Mapping[str, Any],
    overrides: Sequence[str] = (),
    base_dir: str | PathLike[str] = ".",
) -> Simulation:
    """Check a scenario and load what it names, without running it; arguments and errors as for ``simulate``."""
    document, place = _document(scenario, overrides, base_dir)
    return Simulation.prepare(document, place)


def _document(
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
    from dashboard.report import render_report  # plotly takes its time, and a simulation alone does not need it

    check_result(result)
    path = path_of("folder", folder)
    write_run_folder(result, path, render_report(result, title or path.absolute().name))
    return path


def compare(
    scenario: str | PathLike[str] | Mapping[str, Any],
    vary: Mapping[str, Sequence[Any]],
    *,
    seeds: int | None = None,
    baseline: str | None = None,
    metrics: Sequence[str] | None = None,
    overrides: Sequence[str] = (),
    base_dir: str | PathLike[str] = ".",
    out: str | PathLike[str] | None = None,
    jobs: int | None = None,
    progress: Callable[[PlannedRun], None] | None = None,
) -> Comparison:
    """Run variants of a scenario on the same requests and hold them against a baseline.

    ``vary`` gives the values of each key: ``{"scheduler.ordering.name": ["fcfs", "sjf"]}``; variants are all their
    combinations. Each runs with ``seeds`` seeds, by default as few as can tell a
    difference from chance (6 for two variants), or 1 where requests do not depend on the seed. With
    ``out``, a folder, finished runs are kept there and found again by the next call, as are the comparison and its
    report. ``jobs`` runs go on at once, by default one per core; ``progress`` is told of each that is done. Other
    arguments and errors are as for ``simulate``.
    """
    check_callable("progress", progress)
    jobs = whole_number_of("jobs", jobs)
    folder = None if out is None else path_of("out", out)
    if folder is not None:
        check_comparison_folder(folder)
    planned = plan(scenario, vary, seeds, baseline, metrics, overrides, base_dir)
    if folder is None:
        with TemporaryDirectory(prefix="servetwin-") as temporary:
            carry_out(planned, Path(temporary), jobs, progress)
            return evaluate(planned, Path(temporary))
    looks = earlier_looks(planned, folder)
    carry_out(planned, folder / RUNS, jobs, progress)
    comparison = evaluate(planned, folder / RUNS, looks)
    save_comparison(comparison, folder)
    return comparison


def plan(
    scenario: str | PathLike[str] | Mapping[str, Any],
    vary: Mapping[str, Sequence[Any]],
    seeds: int | None = None,
    baseline: str | None = None,
    metrics: Sequence[str] | None = None,
    overrides: Sequence[str] = (),
    base_dir: str | PathLike[str] = ".",
) -> Plan:
    """Check a comparison and every run of it, without running any; arguments and errors as for ``compare``."""
    document, place = _document(scenario, overrides, base_dir)
    if metrics is not None:
        metrics = texts_of("metrics", metrics, "the name of a metric, such as ttft_s.p99")
    if baseline is not None and not isinstance(baseline, str):
        raise InputError("baseline", baseline, "the label of a variant, or its value as text")
    return plan_comparison(document, place, values_by_key(vary), whole_number_of("seeds", seeds), baseline, metrics)


def save_comparison(comparison: Comparison, folder: str | PathLike[str], title: str | None = None) -> Path:
    """Write a comparison and its report, and return the folder; raises ``ServetwinError`` if that cannot be done."""
    from dashboard.comparison_report import render_comparison

    path = Path(folder)
    write_comparison(comparison, path, render_comparison(comparison, title or path.absolute().name))
    return path
