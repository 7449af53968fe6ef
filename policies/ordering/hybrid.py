"""Priority levels, shortest first inside, and a share for the lowest."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from policies.bounds import check_seconds
from policies.ordering import GroupOrdering
from policies.ordering.recent_service import RecentService
from policies.prediction import LengthPredictor
from policies.prediction.oracle import Oracle
from policies.views import GroupView, RequestView


@dataclass(slots=True)
class Hybrid(GroupOrdering):
    """Serve the most urgent level first, within it the shortest predicted output first.

    The lowest level that waits is sure of ``lowest_share`` of the time of those that wait, counted anew in every window
    of ``window_s``. A step's time is divided among the tokens that it computes.

    Source: own, of priority levels and shortest job first.
    """

    hears_admitted: ClassVar[bool] = True
    lowest_share: float = 0.1
    window_s: float = 60.0
    predictor: LengthPredictor = field(default_factory=Oracle)
    _recent: RecentService = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.lowest_share < 1:
            raise ValueError(f"lowest_share is {self.lowest_share}, expected a number from 0 to less than 1")
        check_seconds(self, "window_s")
        self._recent = RecentService(self.window_s)

    def group(self, request: RequestView) -> str:
        """The level."""
        return str(request.priority)

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The predicted output, then the arrival."""
        return self.predictor.output_tokens(request), request.arrival_s

    def activated(self, group: GroupView, others: Sequence[GroupView]) -> None:
        """Follow what the level is served."""
        self._recent.activated(group)

    def choose(self, groups: Sequence[GroupView], now_s: float) -> GroupView:
        """The lowest level if it has had less than its share, else the most urgent."""
        lowest = max(groups, key=_level)
        served = self._recent.of(groups, now_s)
        short = served[lowest.name] < self.lowest_share * sum(served.values())
        return lowest if short else min(groups, key=_level)

    def admitted(self, request: RequestView, now_s: float) -> None:
        """Charge it to its level."""
        self._recent.admitted(self.group(request), request, now_s)

    @property
    def predictors(self) -> tuple[LengthPredictor, ...]:
        """The one that it asks."""
        return (self.predictor,)


def _level(group: GroupView) -> int:
    return int(group.name)
