"""A run with its uncertainty bands: the run, then its replays, in processes where that is quicker."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.bands.bands import Figures, check_replays, figures_of, with_bands
from experiments.bands.replay import replay
from experiments.processes import available_cores, in_processes
from simcore.build.simulation import Simulation
from simcore.core.result import Result
from simcore.cost.uncertainty import Draw, draws
from simcore.service.senders import Progress

_WORTH_PROCESSES_S = 5.0


def run_with_bands(
    simulation: Simulation, replays: int, progress: Progress | None = None, jobs: int | None = None
) -> Result:
    """Run a simulation, and again ``replays`` times for its bands; 0 is none.

    ``jobs`` replays go on at once, by default one per core if they take long; bands do not depend on it. ``progress``
    is told of the requests of the run itself. Raises ``InputError`` for a number of replays that no band can be of.
    """
    check_replays("bands", replays)
    result = simulation.run(progress)
    if not replays:
        return result
    drawn = draws(replays, simulation.scenario.seed)
    if jobs is None:
        jobs = available_cores() if replays * result.summary["run"]["wall_s"] > _WORTH_PROCESSES_S else 1
    jobs = min(jobs, replays)
    if jobs > 1:
        parts = [(simulation.scenario.document(), [*map(dict, drawn[first::jobs])]) for first in range(jobs)]
        done = dict(in_processes(_replayed, parts, jobs, lambda part: "replays for bands"))
        return with_bands(result, [done[index % jobs][index // jobs] for index in range(replays)])
    return with_bands(result, [figures_of(replay(simulation, draw).run()) for draw in drawn])


def _replayed(part: tuple[dict[str, Any], Sequence[Draw]]) -> list[Figures]:
    document, drawn = part
    simulation = Simulation.prepare(document, Path())
    return [figures_of(replay(simulation, draw).run()) for draw in drawn]
