"""Service of tenants, lifted when they come back."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from policies.views import GroupView


@dataclass(slots=True)
class LiftedService:
    """Service per unit of weight, such that nobody saves up service while away (Sheng et al., OSDI 2024, algorithm 2).

    A tenant that comes back while others wait is lifted to the least of their present service. If none waits it is
    lifted to the present service of the tenant admitted last. A lift never lowers.
    """

    served: Callable[[GroupView], float]
    weights: Mapping[str, float]
    _lifts: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    _last: GroupView | None = field(default=None, init=False, repr=False)

    def __call__(self, group: GroupView) -> float:
        """The tenant's service per unit of weight, lifts included."""
        return self.served(group) / self.weights.get(group.name, 1.0) + self._lifts.get(group.name, 0.0)

    def activated(self, group: GroupView, others: Sequence[GroupView]) -> None:
        """Lift a tenant that comes back."""
        peers = others or ([] if self._last is None else [self._last])
        missing = min(map(self, peers), default=0.0) - self(group)
        if missing > 0:
            self._lifts[group.name] = self._lifts.get(group.name, 0.0) + missing

    def admitted(self, group: GroupView | None) -> None:
        """Remember the tenant admitted last."""
        self._last = group
