"""A question answered: bounds of all set-ups first, then a search in each group, several of them at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from experiments.planner.bounds import Asked, Bound, bounds_of
from experiments.planner.driving import Progress, drive
from experiments.planner.question import Question
from experiments.planner.search import Found, Try, search
from experiments.planner.space import SetUp, set_ups
from experiments.planner.trial import Outcome, Trial
from experiments.runners import Runner, as_they_come

Group = tuple[str, str]
"""A model and an accelerator: of each, the cheapest set-up is an answer."""
_BOUNDED_TOGETHER = 24


@dataclass(slots=True)
class CapacityPlan:
    """All that was found out: set-ups with their bounds, the search of each group, and every trial."""

    question: Question = field(repr=False)
    set_ups: list[SetUp]
    bounds: list[Bound]
    found: dict[Group, Found]
    outcomes: dict[Try, Outcome]

    @property
    def simulations(self) -> int:
        """All runs of all trials."""
        return sum(outcome.simulations for outcome in self.outcomes.values())

    @property
    def requests(self) -> int:
        """All requests of all runs."""
        return sum(outcome.requests for outcome in self.outcomes.values())


def make_plan(question: Question, runner: Runner, progress: Progress | None = None) -> CapacityPlan:
    """Answer a question; the answer does not depend on the runner.

    Raises ``InputError`` for settings that there are not, ``ServetwinError`` for a run that fails.
    """
    tell = progress or (lambda what, simulations: None)
    candidates = set_ups(question)
    bounds = _bounds(question, candidates, runner, tell)
    groups: dict[Group, list[int]] = {}
    for place, candidate in enumerate(candidates):
        groups.setdefault((candidate.model, candidate.accelerator), []).append(place)
    searches = {
        group: search(places, candidates, bounds, question.budget_usd_per_h) for group, places in groups.items()
    }
    outcomes: dict[Try, Outcome] = {}
    found = drive(
        searches,
        lambda tried: Trial(candidates[tried.place].with_replicas(tried.replicas), question.stages),
        lambda tried: f"{tried.replicas} × {candidates[tried.place].label}",
        outcomes,
        runner,
        tell,
    )
    return CapacityPlan(question, candidates, bounds, found, outcomes)


def _bounds(question: Question, candidates: Sequence[SetUp], runner: Runner, tell: Progress) -> list[Bound]:
    asked = [Asked(each.alone, question.load, question.objectives, each.apart) for each in candidates]
    parts = [asked[start : start + _BOUNDED_TOGETHER] for start in range(0, len(asked), _BOUNDED_TOGETHER)]
    done: dict[int, list[Bound]] = {}
    for place, bounds in as_they_come(runner, bounds_of, parts, lambda part: "bounds of set-ups"):
        done[place] = bounds
        tell(f"bounds of {sum(map(len, done.values())):,} of {len(candidates):,} set-ups", 0)
    return [bound for place in range(len(parts)) for bound in done[place]]
