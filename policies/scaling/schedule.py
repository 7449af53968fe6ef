"""Replicas by the time of day."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.bounds import MOST, check_seconds, check_value
from policies.scaling import Scaling
from policies.scaling.fleet_view import FleetView


@dataclass(frozen=True, slots=True)
class Schedule(Scaling):
    """Want what a table says of the time: `replicas` maps seconds of a period of `period_s` to numbers from then on.

    Before the first time of a period the last one's number stands. `ahead_s` moves the table forward, so that replicas
    serve in time. Without a table, as many are wanted as at the start.

    Source: scheduled actions of AWS Auto Scaling.
    """

    replicas: Mapping[int, int] = field(default_factory=dict)
    period_s: float = 86400.0
    ahead_s: float = 0.0

    def __post_init__(self) -> None:
        check_seconds(self, "period_s")
        check_value("ahead_s", self.ahead_s, 0.0, 1e9)
        for at_s, replicas in self.replicas.items():
            check_value("replicas", at_s, 0, int(self.period_s))
            check_value(f"replicas.{at_s}", replicas, 0, MOST)

    def wanted(self, fleet: FleetView, now_s: float) -> float:
        """The number of the last time of the table that is past."""
        if not self.replicas:
            return fleet.stated_replicas
        time_s = (now_s + self.ahead_s) % self.period_s
        past = [at_s for at_s in self.replicas if at_s <= time_s]
        return self.replicas[max(past or self.replicas)]
