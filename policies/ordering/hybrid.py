"""Priority levels, shortest first inside, and a share for the lowest."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from policies.ordering import GroupOrdering
from policies.prediction import LengthPredictor
from policies.prediction.oracle import Oracle
from policies.views import GroupView, RequestView


@dataclass(frozen=True, slots=True)
class Hybrid(GroupOrdering):
    """Serve the most urgent level first, within it the shortest predicted output first.

    The lowest level that waits is sure of ``lowest_share`` of the tokens served to those that wait.
    """

    lowest_share: float = 0.1
    predictor: LengthPredictor = field(default_factory=Oracle)

    def __post_init__(self) -> None:
        if not 0 <= self.lowest_share < 1:
            raise ValueError(f"lowest_share is {self.lowest_share}, expected a number from 0 to less than 1")

    def group(self, request: RequestView) -> str:
        """The level."""
        return str(request.priority)

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The predicted output, then the arrival."""
        return self.predictor.output_tokens(request), request.arrival_s

    def choose(self, groups: Sequence[GroupView], now_s: float) -> GroupView:
        """The lowest level if it has had less than its share, else the most urgent."""
        by_level = sorted(groups, key=lambda group: int(group.name))
        lowest = by_level[-1]
        total = sum(_served(group) for group in groups)
        return lowest if _served(lowest) < self.lowest_share * total else by_level[0]

    @property
    def predictors(self) -> tuple[LengthPredictor, ...]:
        """The one that it asks."""
        return (self.predictor,)


def _served(group: GroupView) -> int:
    return group.prompt_tokens_served + group.output_tokens_served
