"""The search for the cheapest set-up of a group that holds its limits, by as few trials as possible.

More replicas serve the same requests no slower, so the fewest that hold the limits are found by bisection, from the
bound upwards. Every trial of a question has the same requests (common random numbers), so set-ups differ by what they
are, not by chance. A set-up is tried further only if it holds its limits at a lower price than the best so far.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor

from experiments.planner.bounds import Bound
from experiments.planner.space import SetUp
from experiments.planner.trial import Outcome

_TOGETHER = 4
"""Set-ups that are held against the best one at a time, whatever the number of processors: results depend on it."""
_FIRST_GUESS = 1.15
"""Replicas over their bound, as a first guess."""
_MOST_OVER_BOUND = 8
"""Without a budget, a set-up that needs more than so many times its bound, and a few, is given up."""
_MOST_REPLICAS = 10_000
_FEW = 8
_CENT = 1e-9


@dataclass(frozen=True, slots=True)
class Try:
    """A set-up, by its place in the list of all, with a number of replicas."""

    place: int
    replicas: int


@dataclass(frozen=True, slots=True)
class Solved:
    """The fewest replicas with which a set-up holds its limits."""

    place: int
    replicas: int
    usd_per_h: float


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to: all set-ups that were solved, the cheapest last, and those that cannot be cheaper.

    ``impossible`` gives the reason by place; ``dearer`` the least price, USD per hour, of those that were ruled out.
    """

    impossible: dict[int, str]
    dearer: dict[int, float]
    solved: list[Solved]

    @property
    def best(self) -> Solved | None:
        """The cheapest; None if no set-up holds its limits."""
        return self.solved[-1] if self.solved else None

    def note(self, place: int, replicas: int | None, usd_per_h: float, otherwise_usd_per_h: float) -> None:
        """Keep what became of a set-up: the replicas it needs, or what it costs at least if those are too many."""
        if replicas is None:
            self.dearer[place] = otherwise_usd_per_h
        else:
            self.solved.append(Solved(place, replicas, replicas * usd_per_h))


Searching = Generator[list[Try], Mapping[Try, Outcome], Found]


def search(
    places: Sequence[int],
    set_ups: Sequence[SetUp],
    bounds: Sequence[Bound],
    budget_usd_per_h: float | None,
) -> Searching:
    """Search among the set-ups at ``places``: yields what is to be tried next, and is sent how it went."""
    found = Found({}, {}, [])
    prices = {place: set_ups[place].usd_per_h for place in places}
    candidates = []
    for place in places:
        if bounds[place].impossible is not None:
            found.impossible[place] = str(bounds[place].impossible)
        elif budget_usd_per_h is not None and bounds[place].replicas * prices[place] > budget_usd_per_h + _CENT:
            found.dearer[place] = bounds[place].replicas * prices[place]
        else:
            candidates.append(place)
    candidates.sort(key=lambda place: (bounds[place].replicas * prices[place], set_ups[place].devices, place))
    while candidates and found.best is None:
        place = candidates.pop(0)
        low, most = bounds[place].replicas - 1, _most_replicas(bounds[place], prices[place], budget_usd_per_h)
        guess = ceil(bounds[place].work * _FIRST_GUESS)
        replicas = yield from _fewest(place, low, most, guess)
        found.note(place, replicas, prices[place], (most + 1) * prices[place])
    while candidates and found.best is not None:
        best = found.best.usd_per_h
        cheaper = {place: _most_below(best, prices[place]) for place in candidates}
        for place in candidates:
            if cheaper[place] < bounds[place].replicas:
                found.dearer[place] = bounds[place].replicas * prices[place]
        candidates = [place for place in candidates if place not in found.dearer]
        wave, candidates = candidates[:_TOGETHER], candidates[_TOGETHER:]
        tries = [Try(place, cheaper[place]) for place in wave]
        outcomes = yield tries
        for tried in tries:
            if not outcomes[tried].holds:
                found.dearer[tried.place] = (tried.replicas + 1) * prices[tried.place]
                continue
            low, most = bounds[tried.place].replicas - 1, _most_below(found.best.usd_per_h, prices[tried.place])
            high = tried.replicas if tried.replicas <= most else None
            replicas = (yield from _fewest(tried.place, low, most, most, high)) if low < most else None
            found.note(tried.place, replicas, prices[tried.place], (most + 1) * prices[tried.place])
    return found


def _fewest(
    place: int, low: int, most: int, guess: int, high: int | None = None
) -> Generator[list[Try], Mapping[Try, Outcome], int | None]:
    """The fewest replicas that hold the limits, above ``low`` and up to ``most``; None if so many do not.

    Those up to ``low`` do not hold them; ``high``, if given, do.
    """
    step = 1
    replicas = min(max(guess, low + 1), most) if high is None else (low + high) // 2
    while high is None or high - low > 1:
        tried = Try(place, replicas)
        outcome = (yield [tried])[tried]
        if outcome.holds:
            high = replicas
        else:
            low = replicas
            if low >= most:
                return None
        if high is None:
            replicas = min(max(low + step, _to_keep_up(outcome, low)), most)
            step *= 2
        else:
            replicas = (low + high) // 2
    return high


def _to_keep_up(outcome: Outcome, replicas: int) -> int:
    """How many replicas would serve what is offered, if these did not."""
    rates = outcome.figures["throughput"]
    if rates["keeps_up"] is not False or not rates["served_requests_per_s"]:
        return 0
    return ceil(replicas * float(rates["offered_requests_per_s"]) / float(rates["served_requests_per_s"]))


def _most_replicas(bound: Bound, usd_per_h: float, budget_usd_per_h: float | None) -> int:
    if budget_usd_per_h is not None:
        return min(floor(budget_usd_per_h / usd_per_h + _CENT), _MOST_REPLICAS)
    return min(_MOST_OVER_BOUND * bound.replicas + _FEW, _MOST_REPLICAS)


def _most_below(usd_per_h: float, each: float) -> int:
    """The most replicas at a lower price together."""
    return min(ceil((usd_per_h - _CENT) / each) - 1, _MOST_REPLICAS)
