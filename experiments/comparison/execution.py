"""Carry out the runs of a plan, several at a time, and keep each as it finishes."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

from experiments.comparison.plan import Plan, PlannedRun
from experiments.comparison.run_store import RunStore
from experiments.comparison.worker import Worker, perform
from simcore.core.errors import InputError

Progress = Callable[[PlannedRun], None]


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
        _in_processes(missing, folder, jobs, tell)
    else:
        for run in missing:
            perform(run, folder)
            tell(run)
    return len(plan.runs) - len(missing)


def _in_processes(runs: Sequence[PlannedRun], folder: Path, jobs: int, tell: Progress) -> None:
    """A thread per process waits for it, so that this one is free to hear Ctrl-C."""
    idle: SimpleQueue[Worker] = SimpleQueue()

    def on_idle_worker(run: PlannedRun) -> PlannedRun:
        worker = idle.get()
        try:
            worker.perform(run, folder)
        finally:
            idle.put(worker)
        return run

    workers = [Worker() for _ in range(jobs)]
    for worker in workers:
        idle.put(worker)
    with ThreadPoolExecutor(jobs) as threads:
        try:
            for finished in as_completed([threads.submit(on_idle_worker, run) for run in runs]):
                tell(finished.result())
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.stop()
