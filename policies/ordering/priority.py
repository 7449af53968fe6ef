"""Levels of priority, with ageing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from policies.bounds import check_levels, check_seconds
from policies.ordering import GroupOrdering
from policies.ordering.recent_service import RecentService
from policies.views import GroupView, RequestView


@dataclass(slots=True)
class Priority(GroupOrdering):
    """Serve the most urgent level first (0 before 1), by arrival within a level.

    With ``ageing_s`` a waiting request gains one level every so many seconds. So a request of level p is overtaken only
    by requests of level q < p that arrive less than (p - q) * ageing_s after it: that bounds its starvation.
    ``minimum_share`` maps levels to the share of time that each of them gets while it has requests waiting, of that of
    all levels that wait, counted anew in every window of ``window_s``: an idle level saves up no claim. The time of a
    step is divided among the tokens that it computes.

    Source: levels as in vLLM's policy priority; ageing and shares are our own.
    """

    hears_admitted: ClassVar[bool] = True
    keyed_by: ClassVar[Mapping[str, str]] = {"minimum_share": "level"}
    ageing_s: float | None = None
    minimum_share: Mapping[int, float] = field(default_factory=dict)
    window_s: float = 60.0
    _recent: RecentService = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_seconds(self, "ageing_s", "window_s")
        check_levels("minimum_share", self.minimum_share)
        if any(share < 0 for share in self.minimum_share.values()) or sum(self.minimum_share.values()) > 1:
            raise ValueError(f"minimum_share is {self.minimum_share}, expected shares that add up to at most 1")
        self._recent = RecentService(self.window_s)

    def group(self, request: RequestView) -> str:
        """The level."""
        return str(request.priority)

    def activated(self, group: GroupView, others: Sequence[GroupView]) -> None:
        """Follow what the level is served."""
        self._recent.activated(group)

    def choose(self, groups: Sequence[GroupView], now_s: float) -> GroupView:
        """A level that has not had its minimum share, else the one whose first request is most urgent, age counted."""
        if self.minimum_share:
            served = self._recent.of(groups, now_s)
            total = sum(served.values())
            short = [group for group in groups if served[group.name] < self._share(group) * total]
            groups = short or groups
        return min(groups, key=lambda group: (self._urgency(group.first), group.first.number))

    def admitted(self, request: RequestView, now_s: float) -> None:
        """Charge it to its level."""
        self._recent.admitted(self.group(request), request, now_s)

    def _urgency(self, request: RequestView) -> tuple[float, float]:
        aged = request.arrival_s / self.ageing_s if self.ageing_s is not None else 0.0
        return request.priority + aged, request.arrival_s

    def _share(self, group: GroupView) -> float:
        return self.minimum_share.get(int(group.name), 0.0)
