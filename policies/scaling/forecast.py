"""Replicas for the rate that is to come."""

from dataclasses import dataclass, field
from math import sqrt

from policies.bounds import check_amounts, check_range, check_value
from policies.scaling import Scaling
from policies.scaling.fleet_view import FleetView


@dataclass(slots=True)
class Forecast(Scaling):
    """Want replicas for the rate of requests that is expected when a replica that is started now would serve.

    The rate is smoothed with its trend: `level` and `trend` weigh what is new, and the trend is drawn on for the time
    that a start takes, or for `ahead_s`. A replica serves `requests_per_s`. Poisson arrivals come in bunches: so many
    standard deviations of what arrives in a second, `deviations`, are added to the rate.

    Source: Holt 1957, linear trend; square-root staffing, Erlang 1924.
    """

    requests_per_s: float = 4.0
    level: float = 0.5
    trend: float = 0.2
    ahead_s: float | None = None
    deviations: float = 1.0
    _rate_per_s: float | None = field(default=None, init=False, repr=False)
    _slope_per_s2: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        check_amounts(self, "requests_per_s")
        check_value("level", self.level, 0.0, 1.0)
        check_value("trend", self.trend, 0.0, 1.0)
        check_range(self, 0.0, 1e9, "ahead_s")
        check_value("deviations", self.deviations, 0.0, 100.0)

    def wanted(self, fleet: FleetView, now_s: float) -> float:
        """The rate expected over what a replica serves."""
        self._learn(fleet.arrived_requests / fleet.since_s, fleet.since_s)
        ahead_s = fleet.start_s if self.ahead_s is None else self.ahead_s
        assert self._rate_per_s is not None
        expected_per_s = max(self._rate_per_s + self._slope_per_s2 * ahead_s, 0.0)
        return (expected_per_s + self.deviations * sqrt(expected_per_s)) / self.requests_per_s

    def _learn(self, rate_per_s: float, since_s: float) -> None:
        """Take in the rate since the last look."""
        before_per_s = self._rate_per_s
        if before_per_s is None:
            self._rate_per_s = rate_per_s
            return
        expected_per_s = before_per_s + self._slope_per_s2 * since_s
        self._rate_per_s = self.level * rate_per_s + (1 - self.level) * expected_per_s
        slope_per_s2 = (self._rate_per_s - before_per_s) / since_s
        self._slope_per_s2 = self.trend * slope_per_s2 + (1 - self.trend) * self._slope_per_s2
