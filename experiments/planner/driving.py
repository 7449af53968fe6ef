"""Several searches at once: each goes on as soon as its own tries are done, whatever the others wait for."""

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from typing import TypeVar

from experiments.planner.search import Found, Searching, Try
from experiments.planner.trial import Outcome, Trial, attempt
from experiments.runners import Runner

Key = TypeVar("Key")
Progress = Callable[[str, int], None]
"""Told what is being tried now, and how many simulations have been run."""


def drive(
    searches: Mapping[Key, Searching],
    trial_of: Callable[[Try], Trial],
    named: Callable[[Try], str],
    outcomes: dict[Try, Outcome],
    runner: Runner,
    tell: Progress,
) -> dict[Key, Found]:
    """Carry out what the searches ask for until all have ended; ``outcomes`` is filled with how every try went.

    What a search finds does not depend on the others, nor on the order in which tries are done.
    """
    found: dict[Key, Found] = {}
    wanted: dict[Key, list[Try]] = {}
    underway: dict[Future[Outcome], Try] = {}
    backlog: list[Try] = []

    def advance(key: Key, first: bool = False) -> None:
        answers = None if first else {tried: outcomes[tried] for tried in wanted[key]}
        while True:
            try:
                tries = next(searches[key]) if answers is None else searches[key].send(answers)
            except StopIteration as ended:
                found[key] = ended.value
                wanted.pop(key, None)
                return
            wanted[key] = tries
            new = [tried for tried in tries if tried not in outcomes]
            if new:
                backlog.extend(new)
                return
            answers = {tried: outcomes[tried] for tried in tries}

    for key in searches:
        advance(key, first=True)
    while backlog or underway:
        while backlog and len(underway) < runner.at_once:
            tried = backlog.pop(0)
            tell(named(tried), sum(outcome.simulations for outcome in outcomes.values()))
            underway[runner.submit(attempt, trial_of(tried), partial(_name, named(tried)))] = tried
        for finished in wait(underway, return_when=FIRST_COMPLETED).done:
            outcomes[underway.pop(finished)] = finished.result()
        for key in list(wanted):
            if all(tried in outcomes for tried in wanted[key]):
                advance(key)
    return {key: found[key] for key in searches}


def _name(name: str, trial: Trial) -> str:
    return name
