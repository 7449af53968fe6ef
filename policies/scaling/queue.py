"""A replica for so many requests."""

from dataclasses import dataclass

from policies.bounds import check_amounts
from policies.scaling import Scaling
from policies.scaling.fleet_view import FleetView


@dataclass(frozen=True, slots=True)
class Queue(Scaling):
    """Want a replica for each `requests_per_replica` requests that wait or run.

    Source: the concurrency target of Knative's autoscaler, and `target_ongoing_requests` of Ray Serve.
    """

    requests_per_replica: float = 32.0

    def __post_init__(self) -> None:
        check_amounts(self, "requests_per_replica")

    def wanted(self, fleet: FleetView, now_s: float) -> float:
        """The open requests over the target."""
        return (fleet.waiting_requests + fleet.running_requests) / self.requests_per_replica
