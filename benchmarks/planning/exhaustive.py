"""Hold plans against exhaustive search on random problems: ``python -m benchmarks.planning.exhaustive``.

Exhaustive search tries every set-up with every number of replicas up to a most. A trial is the same for both.
"""

import argparse
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from benchmarks.planning.problems import Problem, problem
from benchmarks.planning.rows import add, resumed, start
from experiments.planner.planning import CapacityPlan, make_plan
from experiments.planner.search import Try
from experiments.planner.space import SetUp
from experiments.planner.trial import Outcome, Trial, attempt
from experiments.runners import Runner, as_they_come, runner_of
from simcore.build.simulation import Simulation
from simcore.core.errors import ServetwinError

NAMES = (
    "problem", "model", "set_ups", "cheapest_usd_per_h", "found_usd_per_h", "cheapest", "found",
    "exhaustive_simulations", "simulations", "share",
)  # fmt: skip


def held(each: Problem, runner: Runner) -> dict[str, object]:
    """A problem solved both ways, as a row of the table."""
    plan = make_plan(each.question, runner)
    tries = every_try(plan, each.most_replicas)
    trials = [Trial(plan.set_ups[one.place].with_replicas(one.replicas), each.question.stages) for one in tries]
    outcomes = {tries[place]: outcome for place, outcome in as_they_come(runner, attempt, trials)}
    best = cheapest(plan, outcomes)
    solved = [one.best for one in plan.found.values() if one.best and one.best.replicas <= each.most_replicas]
    found = min(solved, key=lambda one: one.usd_per_h, default=None)
    simulations = sum(outcome.simulations for outcome in outcomes.values())
    return {
        "problem": each.number,
        "model": each.question.models[0],
        "set_ups": len(plan.set_ups),
        "cheapest_usd_per_h": None if best is None else round(best.replicas * plan.set_ups[best.place].usd_per_h, 4),
        "found_usd_per_h": None if found is None else round(found.usd_per_h, 4),
        "cheapest": None if best is None else f"{best.replicas} × {plan.set_ups[best.place].label}",
        "found": None if found is None else f"{found.replicas} × {plan.set_ups[found.place].label}",
        "exhaustive_simulations": simulations,
        "simulations": plan.simulations,
        "share": round(plan.simulations / simulations, 4),
    }


def every_try(plan: CapacityPlan, most_replicas: int) -> list[Try]:
    """Every set-up whose scenario can run, however slow a bound says it is, with every number of replicas."""
    runs = [place for place, set_up in enumerate(plan.set_ups) if _can_run(set_up)]
    return [Try(place, replicas) for place in runs for replicas in range(1, most_replicas + 1)]


def _can_run(set_up: SetUp) -> bool:
    try:
        Simulation.prepare(set_up.with_replicas(1), Path())
    except ServetwinError:
        return False
    return True


def cheapest(plan: CapacityPlan, outcomes: Mapping[Try, Outcome]) -> Try | None:
    """The try of the lowest price that holds the limits."""
    return min(
        (tried for tried, outcome in outcomes.items() if outcome.holds),
        key=lambda tried: (tried.replicas * plan.set_ups[tried.place].usd_per_h, tried.place),
        default=None,
    )


def main() -> None:
    """Write the table of so many problems."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=20)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--resume", action="store_true", help="go on after the problems that the table has")
    asked = parser.parse_args()
    table, there = resumed("exhaustive.csv", NAMES) if asked.resume else (start("exhaustive.csv", NAMES), 0)
    with closing(runner_of(asked.jobs)) as runner:
        for number in range(there, asked.problems):
            add(table, NAMES, held(problem(number), runner))


if __name__ == "__main__":
    main()
