"""A bound on any stretch of time."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from policies.admission import TOO_LARGE, Admission, tokens_of
from policies.bounds import SHORTEST_S, check_amounts, check_seconds
from policies.by_tenant import Amount, amount_of, differ
from policies.views import RequestView, ServiceView

_LIMIT = 600.0


@dataclass(slots=True)
class SlidingWindow(Admission):
    """Reject what would make more than ``limit`` units within any ``window_s``, to the exact request.

    A request counts one unit, or with ``unit: tokens`` as many as its prompt and its limit of output add up to.
    With ``per_tenant``, or a limit by tenant, ``{gold: 20}``, each tenant is counted apart; who is not named there has
    the default.

    Source: own; a log of what was let in, as rate limiters of gateways keep it.
    """

    keyed_by: ClassVar[Mapping[str, str]] = {"limit": "tenant"}
    limit: Amount = _LIMIT
    window_s: float = 60.0
    unit: Literal["requests", "tokens"] = "requests"
    per_tenant: bool = False
    _accepted: dict[str, deque[tuple[float, float]]] = field(default_factory=dict, init=False, repr=False)
    _sums: dict[str, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_amounts(self, "limit")
        check_seconds(self, "window_s")

    def rejects(self, request: RequestView, service: ServiceView, now_s: float) -> str | None:
        """Whether the window is full; what has left it is forgotten on the way."""
        limit = amount_of(self.limit, request.tenant, _LIMIT)
        if self._cost(request) > limit:
            return TOO_LARGE
        party = self._party(request)
        recent = self._accepted.setdefault(party, deque())
        # Times are whole nanoseconds of the clock, up to the rounding of their difference.
        while recent and now_s - recent[0][0] > self.window_s - SHORTEST_S / 2:
            self._sums[party] -= recent.popleft()[1]
        return "over the rate limit" if self._sums.get(party, 0.0) + self._cost(request) > limit else None

    def accepted(self, request: RequestView, now_s: float) -> None:
        """Count the request."""
        party = self._party(request)
        self._accepted.setdefault(party, deque()).append((now_s, self._cost(request)))
        self._sums[party] = self._sums.get(party, 0.0) + self._cost(request)

    def _cost(self, request: RequestView) -> float:
        return 1.0 if self.unit == "requests" else float(tokens_of(request))

    def _party(self, request: RequestView) -> str:
        return request.tenant if self.per_tenant or differ(self.limit) else ""
