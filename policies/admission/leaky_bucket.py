"""A rate without bursts."""

from dataclasses import dataclass, field
from typing import Literal

from policies.admission import TOO_LARGE, Admission, tokens_of
from policies.bounds import SHORTEST_S, check_amounts
from policies.views import RequestView, ServiceView


@dataclass(slots=True)
class LeakyBucket(Admission):
    """Reject what would overflow a bucket that leaks at a steady rate.

    A request pours in one unit, or with ``unit: tokens`` as many as its prompt and its limit of output add up to; it is
    rejected if that would be more than ``capacity``. ``per_tenant`` gives each tenant a bucket of its own.

    Source: Turner, IEEE Communications Magazine 1986; as a meter ITU-T I.371.
    """

    rate_per_s: float = 10.0
    capacity: float = 1.0
    unit: Literal["requests", "tokens"] = "requests"
    per_tenant: bool = False
    _levels: dict[str, tuple[float, float]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_amounts(self, "rate_per_s", "capacity")

    def rejects(self, request: RequestView, service: ServiceView, now_s: float) -> str | None:
        """Whether the bucket would overflow."""
        if self._cost(request) > self.capacity:
            return TOO_LARGE
        # Arrivals are rounded to the clock's nanosecond: what that alone makes too much is not too much.
        most = self.capacity + SHORTEST_S * self.rate_per_s
        overflows = self._level(request, now_s) + self._cost(request) > most
        return "over the rate limit" if overflows else None

    def accepted(self, request: RequestView, now_s: float) -> None:
        """Pour the request in."""
        self._levels[self._party(request)] = (self._level(request, now_s) + self._cost(request), now_s)

    def _level(self, request: RequestView, now_s: float) -> float:
        level, since_s = self._levels.get(self._party(request), (0.0, now_s))
        return max(0.0, level - (now_s - since_s) * self.rate_per_s)

    def _cost(self, request: RequestView) -> float:
        return 1.0 if self.unit == "requests" else float(tokens_of(request))

    def _party(self, request: RequestView) -> str:
        return request.tenant if self.per_tenant else ""
