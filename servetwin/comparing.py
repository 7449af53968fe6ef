"""Variants of a scenario from Python: plan them, run them, save what differs."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from experiments.comparison import Comparison, Plan, PlannedRun, carry_out, evaluate, plan_comparison
from experiments.comparison.folder import RUNS, check_comparison_folder, earlier_looks, write_comparison
from servetwin.api import document_of
from servetwin.arguments import check_callable, path_of, texts_of, values_by_key, whole_number_of
from simcore.core.errors import InputError
from simcore.core.scratch import temporary_folder


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
    combinations. Each runs with ``seeds`` seeds, by default as few as p-values below 5% take (6 for
    two variants), or 1 where requests do not depend on the seed. With
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
        with temporary_folder() as temporary:
            carry_out(planned, temporary, jobs, progress)
            return evaluate(planned, temporary)
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
    document, place = document_of(scenario, overrides, base_dir)
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
