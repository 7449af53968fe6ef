"""A replica that answers later than the others."""

from collections import deque
from dataclasses import dataclass, field

from policies.bounds import check_counts, check_range, check_seconds
from policies.ejection import Ejection


@dataclass(slots=True)
class LatencyOutlier(Ejection):
    """Eject a replica for ``eject_s`` whose last ``window`` first tokens took over ``times`` those of others.

    Means are compared, over the last ``window`` of each replica. A request that failed counts as ``failed_s``.

    Source: gray failure (Huang et al., HotOS 2017), seen from outside by comparing replicas; the form is own.
    """

    times: float = 3.0
    window: int = 20
    eject_s: float = 30.0
    failed_s: float = 10.0
    _recent: dict[int, deque[float]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_range(self, 0.0, 1.0, "most_share")
        check_range(self, 1.0, 1000.0, "times")
        check_counts(self, "window")
        check_seconds(self, "eject_s", "failed_s")

    def judge(self, replica: int, ttft_s: float | None) -> float | None:
        """Compare its mean with that of all others."""
        own = self._recent.setdefault(replica, deque(maxlen=self.window))
        own.append(self.failed_s if ttft_s is None else ttft_s)
        others = [each for number, recent in self._recent.items() if number != replica for each in recent]
        if len(own) < self.window or not others:
            return None
        late = sum(own) / len(own) > self.times * sum(others) / len(others)
        return self.eject_s if late else None

    def returned(self, replica: int) -> None:
        """It begins anew."""
        self._recent[replica].clear()
