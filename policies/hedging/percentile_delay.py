"""A copy after a time that few requests take."""

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field

from policies.bounds import check_counts, check_range
from policies.hedging import Hedging
from policies.views import RequestView


@dataclass(slots=True)
class PercentileDelay(Hedging):
    """Send a copy of a request that waits longer for its first token than ``percent`` of the last ``window`` did.

    There are no copies before ``window`` requests are complete. With the 95th percentile copies add little load.

    Source: hedged requests (Dean and Barroso, The Tail at Scale, CACM 2013).
    """

    percent: float = 95.0
    window: int = 200
    _recent: deque[float] = field(default_factory=deque, init=False, repr=False)
    _sorted: list[float] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        check_range(self, 0.0, 100.0, "percent")
        check_counts(self, "window")

    def delay_s(self, request: RequestView) -> float | None:
        """The percentile, once there is one."""
        if len(self._sorted) < self.window:
            return None
        return self._sorted[round(self.percent / 100 * (self.window - 1))]

    def answered(self, request: RequestView, ttft_s: float) -> None:
        """Put it in the place of the oldest."""
        self._recent.append(ttft_s)
        insort(self._sorted, ttft_s)
        if len(self._recent) > self.window:
            del self._sorted[bisect_left(self._sorted, self._recent.popleft())]
