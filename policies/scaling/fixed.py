"""Always as many replicas."""

from dataclasses import dataclass

from policies.scaling import Scaling
from policies.scaling.fleet_view import FleetView


@dataclass(frozen=True, slots=True)
class Fixed(Scaling):
    """Want as many replicas as there are at the start: what is lost is replaced, and nothing else changes.

    Source: the replica count of a Kubernetes Deployment.
    """

    def wanted(self, fleet: FleetView, now_s: float) -> float:
        """The number that the scenario states."""
        return fleet.stated_replicas
