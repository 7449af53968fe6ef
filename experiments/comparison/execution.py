"""Carry out the runs of a plan, several at a time, and keep each as it finishes."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from experiments.comparison.plan import Plan, PlannedRun
from experiments.comparison.run_store import RunStore
from experiments.processes import available_cores, in_processes
from simcore.build.simulation import Simulation
from simcore.core.errors import InputError, ServetwinError
from simcore.core.scratch import remove_left_over

Progress = Callable[[PlannedRun], None]


def carry_out(plan: Plan, folder: Path, jobs: int | None = None, progress: Progress | None = None) -> int:
    """Carry out the runs that ``folder`` does not hold yet and keep them there; returns how many it did hold.

    ``jobs`` runs go on at once, by default one per core; results do not depend on it. ``progress`` is told of every run
    that is there. Whatever ends this early, Ctrl-C included, leaves the finished runs in place. Raises
    ``ServetwinError`` if a run fails.
    """
    if jobs is not None and jobs < 1:
        raise InputError("--jobs", jobs, "a whole number of at least 1")
    store = RunStore(folder)
    there = {run.name: store.holds(run) for run in plan.runs}
    missing = [run for run in plan.runs if not there[run.name]]
    tell = progress or (lambda run: None)
    for run in plan.runs:
        if there[run.name]:
            tell(run)
    jobs = min(jobs or available_cores(), len(missing))
    if jobs > 1:
        asked = [(run, str(folder.absolute())) for run in missing]
        try:
            with closing(in_processes(_perform, asked, jobs, lambda item: _named(item[0]))) as done:
                for place, _ in done:
                    tell(missing[place])
        finally:
            remove_left_over(folder)  # of processes that were ended while they wrote
    else:
        for run in missing:
            _perform((run, str(folder)))
            tell(run)
    return len(plan.runs) - len(missing)


def _perform(asked: tuple[PlannedRun, str]) -> None:
    """Carry out a run and keep it in a folder; raises ``ServetwinError``, naming the run, if it fails."""
    run, folder = asked
    try:
        RunStore(Path(folder)).keep(run, Simulation.prepare(run.document, Path()).run())
    except ServetwinError as error:
        raise ServetwinError(f"{_named(run)}: {error}") from error


def _named(run: PlannedRun) -> str:
    return f"{run.variant}, seed {run.seed}"
