"""Fast out and slow in: how soon the number of replicas follows what a policy wants."""

from collections import deque
from dataclasses import dataclass, field
from math import ceil

_SLACK = 1e-9
"""So that 3.0000000001, which is 3 but for rounding, does not ask for a fourth replica."""


@dataclass(slots=True)
class Cooldown:
    """Bounds the number of replicas, and lets it fall only to what was wanted at most for ``in_wait_s``.

    It grows at once, but not within ``out_wait_s`` of the last time that it grew. It falls by at most ``most_in`` at a
    time.

    Source: the stabilization window of Kubernetes' HorizontalPodAutoscaler.
    """

    least: int
    most: int
    out_wait_s: float = 0.0
    in_wait_s: float = 300.0
    most_in: int | None = None
    _recent: deque[tuple[float, int]] = field(default_factory=deque, init=False, repr=False)
    _grown_s: float | None = field(default=None, init=False, repr=False)

    def replicas(self, wanted: float, present: int, now_s: float) -> int:
        """How many there should be now, where so many are there or on their way."""
        bounded = min(max(ceil(wanted - _SLACK), self.least), self.most)
        recent = self._recent
        recent.extend([(now_s, bounded)] if recent else [(now_s, present), (now_s, bounded)])
        while len(recent) > 1 and recent[0][0] <= now_s - self.in_wait_s:
            recent.popleft()
        if bounded > present:
            if self._waits(now_s) and present >= self.least:
                return present
            self._grown_s = now_s
            return bounded
        lowest = 0 if self.most_in is None else present - self.most_in
        return min(max(lowest, *(number for _, number in recent)), present)

    def _waits(self, now_s: float) -> bool:
        """Whether it grew too recently to grow again."""
        return self._grown_s is not None and now_s < self._grown_s + self.out_wait_s
