"""A rate with bursts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from policies.admission import TOO_LARGE, Admission, tokens_of
from policies.bounds import SHORTEST_S, check_amounts
from policies.by_tenant import Amount, amount_of, differ
from policies.views import RequestView, ServiceView

_RATE_PER_S = 10.0
_BURST = 20.0


@dataclass(slots=True)
class TokenBucket(Admission):
    """Reject what exceeds a mean rate by more than a burst.

    A bucket holds ``burst`` units at most and gains ``rate_per_s``; a request takes one unit, or with ``unit: tokens``
    as many as its prompt and its limit of output add up to. ``per_tenant`` gives each tenant a bucket of its own. So
    does a rate or a burst by tenant, ``{gold: 20}``; who is not named there has the default.

    Source: RFC 2215 (1997); the counter goes back to Turner, IEEE Communications Magazine 1986.
    """

    keyed_by: ClassVar[Mapping[str, str]] = {"rate_per_s": "tenant", "burst": "tenant"}
    rate_per_s: Amount = _RATE_PER_S
    burst: Amount = _BURST
    unit: Literal["requests", "tokens"] = "requests"
    per_tenant: bool = False
    _levels: dict[str, tuple[float, float]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_amounts(self, "rate_per_s", "burst")

    def rejects(self, request: RequestView, service: ServiceView, now_s: float) -> str | None:
        """Whether the bucket holds too little."""
        if self._cost(request) > amount_of(self.burst, request.tenant, _BURST):
            return TOO_LARGE
        # Arrivals are rounded to the clock's nanosecond: what that alone makes short is not short.
        enough = self._level(request, now_s) + SHORTEST_S * self._rate_per_s(request) >= self._cost(request)
        return None if enough else "over the rate limit"

    def accepted(self, request: RequestView, now_s: float) -> None:
        """Take the request's units."""
        self._levels[self._party(request)] = (self._level(request, now_s) - self._cost(request), now_s)

    def _level(self, request: RequestView, now_s: float) -> float:
        burst = amount_of(self.burst, request.tenant, _BURST)
        level, since_s = self._levels.get(self._party(request), (burst, now_s))
        return min(burst, level + (now_s - since_s) * self._rate_per_s(request))

    def _rate_per_s(self, request: RequestView) -> float:
        return amount_of(self.rate_per_s, request.tenant, _RATE_PER_S)

    def _cost(self, request: RequestView) -> float:
        return 1.0 if self.unit == "requests" else float(tokens_of(request))

    def _party(self, request: RequestView) -> str:
        return request.tenant if self.per_tenant or differ(self.rate_per_s, self.burst) else ""
