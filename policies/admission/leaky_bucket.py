"""A rate without bursts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from policies.admission import TOO_LARGE, Admission, tokens_of
from policies.bounds import SHORTEST_S, check_amounts
from policies.by_tenant import Amount, amount_of, differ
from policies.views import RequestView, ServiceView

_RATE_PER_S = 10.0
_CAPACITY = 1.0


@dataclass(slots=True)
class LeakyBucket(Admission):
    """Reject what would overflow a bucket that leaks at a steady rate.

    A request pours in one unit, or with ``unit: tokens`` as many as its prompt and its limit of output add up to; it is
    rejected if that would be more than ``capacity``. ``per_tenant`` gives each tenant a bucket of its own. So does a
    rate or a capacity by tenant, ``{gold: 20}``; who is not named there has the default.

    Source: Turner, IEEE Communications Magazine 1986; as a meter ITU-T I.371.
    """

    keyed_by: ClassVar[Mapping[str, str]] = {"rate_per_s": "tenant", "capacity": "tenant"}
    rate_per_s: Amount = _RATE_PER_S
    capacity: Amount = _CAPACITY
    unit: Literal["requests", "tokens"] = "requests"
    per_tenant: bool = False
    _levels: dict[str, tuple[float, float]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_amounts(self, "rate_per_s", "capacity")

    def rejects(self, request: RequestView, service: ServiceView, now_s: float) -> str | None:
        """Whether the bucket would overflow."""
        capacity = amount_of(self.capacity, request.tenant, _CAPACITY)
        if self._cost(request) > capacity:
            return TOO_LARGE
        # Arrivals are rounded to the clock's nanosecond: what that alone makes too much is not too much.
        most = capacity + SHORTEST_S * self._rate_per_s(request)
        overflows = self._level(request, now_s) + self._cost(request) > most
        return "over the rate limit" if overflows else None

    def accepted(self, request: RequestView, now_s: float) -> None:
        """Pour the request in."""
        self._levels[self._party(request)] = (self._level(request, now_s) + self._cost(request), now_s)

    def _level(self, request: RequestView, now_s: float) -> float:
        level, since_s = self._levels.get(self._party(request), (0.0, now_s))
        return max(0.0, level - (now_s - since_s) * self._rate_per_s(request))

    def _rate_per_s(self, request: RequestView) -> float:
        return amount_of(self.rate_per_s, request.tenant, _RATE_PER_S)

    def _cost(self, request: RequestView) -> float:
        return 1.0 if self.unit == "requests" else float(tokens_of(request))

    def _party(self, request: RequestView) -> str:
        return request.tenant if self.per_tenant or differ(self.rate_per_s, self.capacity) else ""
