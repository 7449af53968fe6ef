"""Simulate cases, several at a time; the outcome does not depend on how many."""

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from experiments.bands.bands import figures_of, with_bands
from experiments.bands.replay import replay
from experiments.processes import available_cores, in_processes
from fidelity.case import Case, Outcome, Refusal
from fidelity.figures import bands, conditions, figures
from fidelity.host_shares import host_shares
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
    asked = [*zip(cases, [*replays, *[0] * (len(cases) - len(replays))], strict=True)]
    # Cases differ in length by orders of magnitude: one by one, so that no process is left with the long ones.
    done = (
        in_processes(_simulated, asked, jobs) if jobs > 1 else ((at, _simulated(one)) for at, one in enumerate(asked))
    )
    outcomes: dict[int, Outcome | Refusal] = {}
    with closing(done):
        for place, outcome in done:
            outcomes[place] = outcome
            if progress is not None:
                progress(len(outcomes), len(cases))
    return [outcomes[place] for place in range(len(cases))]


def _simulated(asked: tuple[Case, int]) -> Outcome | Refusal:
    return simulate_case(*asked)


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
    return Outcome(
        case, figures(result, keys), conditions(result), bands(result, keys), host_shares(simulation, result)
    )


def _prepared(document: dict[str, Any]) -> Simulation:
    return Simulation.prepare({"pricing": BEST_PRICES} | document, Path())
