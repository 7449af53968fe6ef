"""Simulate cases, several at a time; the outcome does not depend on how many."""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from simcore.comparison.execution import available_cores
from simcore.errors import CapacityError, ServetwinError
from simcore.fidelity.case import Case, Outcome, Refusal
from simcore.fidelity.figures import bands, conditions, figures
from simcore.simulation import Simulation

Progress = Callable[[int, int], None]
BEST_PRICES = {"profile": "auto"}
"""Cases are priced by measured kernels where there are any, so that the simulator is judged at its best."""
_TOO_SMALL = "the model does not fit, as memory is counted here"


def simulate_cases(
    cases: Sequence[Case], jobs: int | None = None, progress: Progress | None = None
) -> list[Outcome | Refusal]:
    """The outcome of each case, in order; a refusal where the scenario itself is refused, with the reason.

    ``jobs`` go on at once, by default one per core. ``progress`` is told how many of how many are done.
    """
    jobs = min(jobs or available_cores(), len(cases))
    done: list[Outcome | Refusal] = []
    if jobs <= 1:
        for case in cases:
            done.append(simulate_case(case))
            if progress is not None:
                progress(len(done), len(cases))
        return done
    # Cases differ in length by orders of magnitude: one by one, so that no process is left with the long ones.
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for outcome in pool.map(simulate_case, cases, chunksize=1):
            done.append(outcome)
            if progress is not None:
                progress(len(done), len(cases))
    return done


def simulate_case(case: Case) -> Outcome | Refusal:
    """Run the scenario of one case."""
    try:
        result = Simulation.prepare({"pricing": BEST_PRICES} | case.document, Path()).run()
    except CapacityError:
        return Refusal(case.name, case.labels, _TOO_SMALL)
    except ServetwinError as error:
        return Refusal(case.name, case.labels, str(error))
    if result.summary["counts"]["rejected"]:
        return Refusal(case.name, case.labels, "requests are longer than memory or context allows")
    keys = tuple(case.measured)
    return Outcome(case, figures(result, keys), conditions(result), bands(result, keys))
