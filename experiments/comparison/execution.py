"""Carry out the runs of a plan, several at a time, and keep each as it finishes."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from experiments.comparison.plan import Plan, PlannedRun
from experiments.comparison.run_store import RunStore
from experiments.runners import as_they_come, runner_of
from simcore.build.simulation import Simulation
from simcore.core.errors import ServetwinError
from simcore.core.result import Columns

Progress = Callable[[PlannedRun], None]


def carry_out(
    plan: Plan, folder: Path, jobs: int | None = None, progress: Progress | None = None, ray: str | None = None
) -> int:
    """Carry out the runs that ``folder`` does not hold yet and keep them there; returns how many it did hold.

    ``jobs`` runs go on at once, by default one per core, or as many as the Ray cluster ``ray`` has processors for;
    results do not depend on it. ``progress`` is told of every run that is there. Whatever ends this early, Ctrl-C
    included, leaves the finished runs in place. Raises ``ServetwinError`` if a run fails.
    """
    store = RunStore(folder)
    there = {run.name: store.holds(run) for run in plan.runs}
    missing = [run for run in plan.runs if not there[run.name]]
    tell = progress or (lambda run: None)
    with closing(runner_of(jobs, ray, most=len(missing))) as runner:
        for run in plan.runs:
            if there[run.name]:
                tell(run)
        with closing(as_they_come(runner, _perform, missing, _named)) as done:
            for place, (summary, requests) in done:
                store.keep(missing[place], summary, requests)
                tell(missing[place])
    return len(plan.runs) - len(missing)


def _perform(run: PlannedRun) -> tuple[dict[str, Any], Columns]:
    """The summary and the requests of a run; raises ``ServetwinError``, naming the run, if it fails."""
    try:
        result = Simulation.prepare(run.document, Path()).run()
    except ServetwinError as error:
        raise ServetwinError(f"{_named(run)}: {error}") from error
    return result.summary, result.requests


def _named(run: PlannedRun) -> str:
    return f"{run.variant}, seed {run.seed}"
