"""Replicas that are full to a share."""

from dataclasses import dataclass

from policies.bounds import check_value
from policies.scaling import Scaling
from policies.scaling.fleet_view import FleetView


@dataclass(frozen=True, slots=True)
class Utilisation(Scaling):
    """Want so many replicas that each is full to `target`: the larger share of its KV blocks and of its batch in use.

    Within `tolerance` of the target nothing changes, and neither while none serves.

    Source: the algorithm of Kubernetes' HorizontalPodAutoscaler: replicas times what is used over the target.
    """

    target: float = 0.6
    tolerance: float = 0.1

    def __post_init__(self) -> None:
        check_value("target", self.target, 0.01, 1.0)
        check_value("tolerance", self.tolerance, 0.0, 1.0)

    def wanted(self, fleet: FleetView, now_s: float) -> float:
        """The replicas that serve, times how much fuller they are than they should be."""
        serving, used = fleet.serving_replicas, fleet.used_share
        present = serving + fleet.starting_replicas
        if not serving or abs(used / self.target - 1) <= self.tolerance:
            return present
        return serving * used / self.target
