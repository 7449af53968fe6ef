"""A question answered: bounds of all set-ups first, then a search in each group, several of them at once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from functools import partial

from experiments.planner.bounds import Asked, Bound, bounds_of
from experiments.planner.question import Question
from experiments.planner.search import Found, Searching, Try, search
from experiments.planner.space import SetUp, set_ups
from experiments.planner.trial import Outcome, Trial, attempt
from experiments.runners import Runner, as_they_come

Group = tuple[str, str]
"""A model and an accelerator: of each, the cheapest set-up is an answer."""
Progress = Callable[[str, int], None]
"""Told what is being tried now, and how many simulations have been run."""
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
    found = _drive(searches, question, candidates, outcomes, runner, tell)
    return CapacityPlan(question, candidates, bounds, found, outcomes)


def _bounds(question: Question, candidates: Sequence[SetUp], runner: Runner, tell: Progress) -> list[Bound]:
    asked = [Asked(each.with_replicas(1), question.load, question.objectives) for each in candidates]
    parts = [asked[start : start + _BOUNDED_TOGETHER] for start in range(0, len(asked), _BOUNDED_TOGETHER)]
    done: dict[int, list[Bound]] = {}
    for place, bounds in as_they_come(runner, bounds_of, parts, lambda part: "bounds of set-ups"):
        done[place] = bounds
        tell(f"bounds of {sum(map(len, done.values())):,} of {len(candidates):,} set-ups", 0)
    return [bound for place in range(len(parts)) for bound in done[place]]


def _drive(
    searches: Mapping[Group, Searching],
    question: Question,
    candidates: Sequence[SetUp],
    outcomes: dict[Try, Outcome],
    runner: Runner,
    tell: Progress,
) -> dict[Group, Found]:
    """Carry out what the searches ask for until all have ended; each goes on as soon as its own tries are done."""
    found: dict[Group, Found] = {}
    wanted: dict[Group, list[Try]] = {}
    underway: dict[Future[Outcome], Try] = {}
    backlog: list[Try] = []

    def advance(group: Group, first: bool = False) -> None:
        answers = None if first else {tried: outcomes[tried] for tried in wanted[group]}
        while True:
            try:
                tries = next(searches[group]) if answers is None else searches[group].send(answers)
            except StopIteration as ended:
                found[group] = ended.value
                wanted.pop(group, None)
                return
            wanted[group] = tries
            new = [tried for tried in tries if tried not in outcomes]
            if new:
                backlog.extend(new)
                return
            answers = {tried: outcomes[tried] for tried in tries}

    for group in searches:
        advance(group, first=True)
    while backlog or underway:
        while backlog and len(underway) < runner.at_once:
            tried = backlog.pop(0)
            tell(_named(candidates, tried), _simulations(outcomes.values()))
            trial = Trial(candidates[tried.place].with_replicas(tried.replicas), question.stages)
            named = partial(_named_trial, _named(candidates, tried))
            underway[runner.submit(attempt, trial, named)] = tried
        for finished in wait(underway, return_when=FIRST_COMPLETED).done:
            tried = underway.pop(finished)
            outcomes[tried] = finished.result()
        for group in list(wanted):
            if all(tried in outcomes for tried in wanted[group]):
                advance(group)
    return found


def _simulations(outcomes: Iterable[Outcome]) -> int:
    return sum(outcome.simulations for outcome in outcomes)


def _named_trial(name: str, trial: Trial) -> str:
    return name


def _named(candidates: Sequence[SetUp], tried: Try) -> str:
    return f"{tried.replicas} × {candidates[tried.place].label}"
