"""The cases that are furthest off, and what they have in common that the others have not."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fidelity.case import Outcome

WORST = 10
_MOST_OF = 0.6
_MORE_OFTEN = 1.5


@dataclass(frozen=True, slots=True)
class Trait:
    """A label that ``among_worst`` of the worst cases share, and ``among_all`` of all cases have (shares)."""

    label: str
    value: str
    among_worst: float
    among_all: float


def worst(outcomes: Sequence[Outcome], key: str, count: int = WORST) -> list[Outcome]:
    """The cases of the greatest |error| of a figure, worst first; ties keep their order."""
    known = [outcome for outcome in outcomes if outcome.error(key) is not None]
    return sorted(known, key=lambda outcome: -abs(outcome.error(key) or 0.0))[:count]


def common_traits(chosen: Sequence[Outcome], outcomes: Sequence[Outcome]) -> list[Trait]:
    """Label values that at least 60% of the chosen have, and 1.5 times as large a share of them as of all."""
    traits = []
    for label in chosen[0].case.labels if chosen else ():
        value, times = Counter(outcome.case.labels[label] for outcome in chosen).most_common(1)[0]
        among_worst = times / len(chosen)
        among_all = sum(outcome.case.labels[label] == value for outcome in outcomes) / len(outcomes)
        if among_worst >= _MOST_OF and among_worst >= _MORE_OFTEN * among_all:
            traits.append(Trait(label, value, among_worst, among_all))
    return traits
