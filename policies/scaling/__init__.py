"""How many replicas a pool should have."""

from abc import ABC, abstractmethod

from policies.scaling.fleet_view import FleetView


class Scaling(ABC):
    """Says from time to time how many replicas are wanted; a fresh object serves each run, so it may keep state.

    Bounds, waits and the warm pool are not its concern: ``policies.scaling.cooldown`` sees to them.
    """

    @abstractmethod
    def wanted(self, fleet: FleetView, now_s: float) -> float:
        """The replicas that should serve; what is no whole number is rounded up."""
