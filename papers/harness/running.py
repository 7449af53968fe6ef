"""Running a study: its cells are shared out by a runner, and held against what was published."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from experiments.runners import Runner, ThisProcess, as_they_come
from papers.harness.catalogue import published_of, study_of
from papers.harness.findings import Findings, evaluate
from papers.harness.study import PUBLISHED, Cell, Figures, Measured, Study
from simcore.core.errors import ServetwinError


@dataclass(frozen=True, slots=True)
class Task:
    """A cell of a paper."""

    paper: str
    cell: Cell

    def __str__(self) -> str:
        cell = self.cell
        return f"{self.paper}, {cell.system} in setup {cell.setup}, seed {cell.seed}"


def perform(task: Task) -> Figures:
    """Measure one cell; raises ``ServetwinError``, which then names the cell."""
    try:
        return study_of(task.paper).measure(task.cell)
    except ServetwinError as error:
        raise ServetwinError(f"{task}: {error}") from error


def tasks_of(name: str, smoke: bool = False) -> list[Task]:
    """All cells of a study; for a smoke test those that claims in the paper's own setup are of."""
    study = study_of(name)
    size = study.smoke if smoke else study.full
    claims = published_of(name).claims
    claimed = {system for claim in claims if claim.setup == PUBLISHED for system in (claim.of, claim.over)}
    return [
        Task(name, Cell(setup, system, seed, size))
        for setup, systems in study.cells.items()
        for system in systems
        for seed in range(size.seeds)
        if not smoke or (setup == PUBLISHED and system in claimed)
    ]


def reproduce(
    name: str,
    runner: Runner | None = None,
    smoke: bool = False,
    progress: Callable[[int, int], Any] = lambda done, total: None,
) -> tuple[Findings, Measured, Study]:
    """Run a paper's experiment, by default in this process; ``progress`` is told how many cells of how many are done.

    Raises ``UnknownNameError`` for a paper that there is not, and what the simulations and the runner raise.
    """
    published, study, tasks = published_of(name), study_of(name), tasks_of(name, smoke)
    answers: dict[int, Figures] = {}
    for place, figures in as_they_come(runner or ThisProcess(), perform, tasks, str):
        answers[place] = figures
        progress(len(answers), len(tasks))
    figures_of: dict[tuple[str, str], list[Figures]] = {}
    for place, task in enumerate(tasks):
        figures_of.setdefault((task.cell.setup, task.cell.system), []).append(answers[place])
    measured = Measured(figures_of)
    return evaluate(name, published, measured), measured, study
