"""Run the answers of plans again, longer and on fresh requests: ``python -m benchmarks.planning.fresh_requests``.

Every answer of some random problems runs with seeds that its plan did not see. A limit holds if the requests of all
these runs together keep it.
"""

import argparse
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.planning.problems import problem
from benchmarks.planning.rows import add, start
from experiments.planner.answers import Answer, answers_of
from experiments.planner.load import lasting
from experiments.planner.planning import make_plan
from experiments.planner.stages import stages_of
from experiments.planner.trial import shares
from experiments.runners import as_they_come, runner_of
from simcore.build.simulation import Simulation

NAMES = ("problem", "answer", "usd_per_h", "requests", "limit", "needed", "share", "held")
_FIRST_SEED = 1_000_000


@dataclass(frozen=True, slots=True)
class FreshRun:
    """The scenario of an answer, for so many seconds with another seed."""

    document: dict[str, Any]
    seed: int
    duration_s: float


def kept_of(run: FreshRun) -> dict[tuple[str, str, float], tuple[int, int]]:
    """For each limit how many requests kept it, of how many."""
    workload = lasting(run.document["workload"], run.duration_s)
    result = Simulation.prepare({**run.document, "workload": workload, "seed": run.seed}, Path()).run()
    return {limit: (share.kept, share.requests) for limit, share in shares(result).items()}


def rows_of(
    number: int, answer: Answer, counts: Sequence[dict[tuple[str, str, float], tuple[int, int]]]
) -> list[dict[str, Any]]:
    """A row for each limit of an answer."""
    rows = []
    for held in answer.outcome.limits:
        kept, requests = np.sum([each[held.metric, held.percentile, held.limit_s] for each in counts], axis=0)
        share = float(kept / requests)
        named = number, f"{answer.replicas} × {answer.set_up.label}", round(answer.usd_per_h, 2), int(requests)
        kept_share = f"{held.name} <= {held.limit_s:g} s", held.needed, round(share, 5), share >= held.needed
        rows.append(dict(zip(NAMES, (*named, *kept_share), strict=True)))
    return rows


def main() -> None:
    """Write the table of so many answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int)
    asked = parser.parse_args()
    table = start("fresh-requests.csv", NAMES)
    count = number = 0
    with closing(runner_of(asked.jobs)) as runner:
        while count < asked.answers:
            each = problem(number, most_requests=12_000)
            load, limits = each.question.load, each.question.objectives
            longest_s = max(stage.duration_s or 0.0 for stage in stages_of(load, limits, 20_000))
            for answer in answers_of(make_plan(each.question, runner)).answers[: asked.answers - count]:
                document = answer.outcome.document
                runs = [FreshRun(document, _FIRST_SEED + seed, longest_s) for seed in range(asked.seeds)]
                counts = [found for _, found in as_they_come(runner, kept_of, runs)]
                for row in rows_of(number, answer, counts):
                    add(table, NAMES, row)
                count += 1
            number += 1


if __name__ == "__main__":
    main()
