"""What the processes behind the dashboard do; each takes scenarios in full, their paths absolute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.what_if.policy_plans import policy_plan
from experiments.comparison.execution import carry_out
from experiments.comparison.plan import PlannedRun
from experiments.processes import tell
from simcore.build.simulation import Simulation
from simcore.core.result import Result


def run(document: Mapping[str, Any]) -> Result:
    """Simulate a scenario; tells how many requests have arrived."""
    return Simulation.prepare(document, Path()).run(tell)


def read(document: Mapping[str, Any]) -> bool:
    """Read what a scenario names, so that it is at hand for the next run."""
    Simulation.prepare(document, Path())
    return True


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a sweep: the rate that was offered, the GPUs that served it, and its summary."""

    rate_per_s: float
    gpus: int
    summary: dict[str, Any]


def sweep(items: Sequence[tuple[float, int, Mapping[str, Any]]]) -> list[Point]:
    """Simulate a scenario for each rate and number of GPUs; tells how many runs are done."""
    points = []
    for rate_per_s, gpus, document in items:
        points.append(Point(rate_per_s, gpus, Simulation.prepare(document, Path()).run().summary))
        tell(len(points))
    return points


def compare(asked: tuple[tuple[Any, ...], str]) -> bool:
    """Carry out the runs of a comparison and keep them in a folder; tells how many are done.

    It is asked for by what ``policy_plan`` takes, since a plan holds functions, which no process can be sent.
    """
    planned, folder = asked
    done = 0

    def told(run: PlannedRun) -> None:
        nonlocal done
        done += 1
        tell(done)

    carry_out(policy_plan(*planned), Path(folder), jobs=1, progress=told)
    return True
