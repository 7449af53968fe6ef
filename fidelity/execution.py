"""Simulate cases, several at a time; the outcome does not depend on how many."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from experiments.bands.bands import figures_of, with_bands
from experiments.bands.replay import replay
from experiments.comparison.execution import available_cores
from fidelity.case import Case, Outcome, Refusal
from fidelity.figures import bands, conditions, figures
from simcore.build.simulation import Simulation
from simcore.core.errors import CapacityError, ServetwinError
from simcore.cost.uncertainty import draws

Progress = Callable[[int, int], None]
BEST_PRICES = {"profile": "auto"}
"""Cases are priced by measured kernels where there are any, so that the simulator is judged at its best."""
_TOO_SMALL = "the model does not fit, as memory is counted here"


def simulate_cases(
    cases: Sequence[Case], jobs: int | None = None, progress: Progress | None = None, replays: Sequence[int] = ()
) -> list[Outcome | Refusal]:
    """The outcome of each case, in order; a refusal where the scenario itself is refused, with the reason.

    ``jobs`` go on at once, by default one per core. ``progress`` is told how many of how many are done. ``replays`` are
    those that bands of the first cases are made of, 0 for no bands; later cases have none.
    """
    jobs = min(jobs or available_cores(), len(cases))
    numbers = [*replays, *[0] * (len(cases) - len(replays))]
    if jobs <= 1:
        return _told(map(simulate_case, cases, numbers), len(cases), progress)
    # Cases differ in length by orders of magnitude: one by one, so that no process is left with the long ones.
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        return _told(pool.map(simulate_case, cases, numbers, chunksize=1), len(cases), progress)


def _told(outcomes: Iterable[Outcome | Refusal], total: int, progress: Progress | None) -> list[Outcome | Refusal]:
    done: list[Outcome | Refusal] = []
    for outcome in outcomes:
        done.append(outcome)
        if progress is not None:
            progress(len(done), total)
    return done


def simulate_case(case: Case, replays: int = 0) -> Outcome | Refusal:
    """Run the scenario of one case, with bands where replays are asked for; they take plausible ones in turn."""
    try:
        simulation = _prepared(case.document)
        result = simulation.run()
        if replays:
            setups = [simulation, *map(_prepared, case.plausible)]
            drawn = enumerate(draws(replays, simulation.scenario.seed))
            replayed = [figures_of(replay(setups[place % len(setups)], draw).run()) for place, draw in drawn]
            result = with_bands(result, replayed)
    except CapacityError:
        return Refusal(case.name, case.labels, _TOO_SMALL)
    except ServetwinError as error:
        return Refusal(case.name, case.labels, str(error))
    if result.summary["counts"]["rejected"]:
        return Refusal(case.name, case.labels, "requests are longer than memory or context allows")
    keys = tuple(case.measured)
    return Outcome(case, figures(result, keys), conditions(result), bands(result, keys))


def _prepared(document: dict[str, Any]) -> Simulation:
    return Simulation.prepare({"pricing": BEST_PRICES} | document, Path())
