"""Stop for a while when the service does badly."""

from collections import deque
from dataclasses import dataclass, field

from policies.admission import Admission
from policies.bounds import check_counts, check_seconds
from policies.views import RequestView, ServiceView


@dataclass(slots=True)
class CircuitBreaker(Admission):
    """Reject everyone for a while after too many slow answers.

    A finished request is slow if its TTFT exceeds ``ttft_s``; one that was dropped, or given up by its client, is too.
    Closed, the breaker opens when more than ``slow_share`` of the last ``window`` of these requests were slow. Open, it
    rejects for ``open_s``. Then it is half open: ``probes`` requests are let in, and if all of them are quick it
    closes, at the first slow one it opens again.

    Source: Nygard, Release It!, 2007.
    """

    ttft_s: float = 2.0
    slow_share: float = 0.5
    window: int = 50
    open_s: float = 10.0
    probes: int = 5
    _recent: deque[bool] = field(default_factory=deque, init=False, repr=False)
    _open_until_s: float | None = field(default=None, init=False, repr=False)
    _probing: set[int] = field(default_factory=set, init=False, repr=False)
    _passed: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        check_seconds(self, "ttft_s", "open_s")
        check_counts(self, "window", "probes")
        if not 0 <= self.slow_share < 1:
            raise ValueError(f"slow_share is {self.slow_share}, expected a number from 0 to less than 1")

    def rejects(self, request: RequestView, service: ServiceView, now_s: float) -> str | None:
        """Whether the breaker is open, or half open with all its probes out."""
        if self._open_until_s is None:
            return None
        waiting = now_s < self._open_until_s or len(self._probing) + self._passed >= self.probes
        return "the circuit breaker is open" if waiting else None

    def accepted(self, request: RequestView, now_s: float) -> None:
        """Half open, the request is a probe."""
        if self._open_until_s is not None:
            self._probing.add(request.number)

    def finished(self, request: RequestView, ttft_s: float, now_s: float) -> None:
        """Judge the request, and with it the service."""
        self._judge(request, ttft_s > self.ttft_s, now_s)

    def dropped(self, request: RequestView, now_s: float) -> None:
        """It counts as slow."""
        self._judge(request, True, now_s)

    def _judge(self, request: RequestView, slow: bool, now_s: float) -> None:
        if self._open_until_s is not None:
            if request.number not in self._probing:
                return
            self._probing.discard(request.number)
            self._passed += 1
            if slow:
                self._open(now_s)
            elif self._passed == self.probes:
                self._open_until_s = None
                self._recent.clear()
            return
        self._recent.append(slow)
        if len(self._recent) > self.window:
            self._recent.popleft()
        if len(self._recent) == self.window and sum(self._recent) > self.slow_share * self.window:
            self._open(now_s)

    def _open(self, now_s: float) -> None:
        self._open_until_s = now_s + self.open_s
        self._probing.clear()
        self._passed = 0
