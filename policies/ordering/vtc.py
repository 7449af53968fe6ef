"""Virtual token counter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policies.ordering import GroupOrdering
from policies.views import GroupView, RequestView


@dataclass(slots=True)
class VirtualTokenCounter(GroupOrdering):
    """Serve the tenant that has been served least, tokens counted with weights (Sheng et al., OSDI 2024).

    A prompt token counts ``prompt_weight``, an output token ``output_weight``, both divided by the tenant's weight
    (default 1). A tenant that comes back is lifted to the least counter among those that wait, so that nobody saves up
    service while away.
    """

    prompt_weight: float = 1.0
    output_weight: float = 2.0
    weights: Mapping[str, float] = field(default_factory=dict)
    _lifts: dict[str, float] = field(default_factory=dict, init=False, repr=False)
    _next: float = field(default=0.0, init=False, repr=False)
    _last: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self) -> None:
        for tenant, weight in self.weights.items():
            if weight <= 0:
                raise ValueError(f"weights.{tenant} is {weight}, expected a number greater than 0")

    def activated(self, group: GroupView, others: Sequence[GroupView]) -> None:
        """Lift the counter of a tenant that comes back; alone, to that of the tenant served last."""
        least = min(map(self.counter, others)) if others else self._last
        missing = least - self.counter(group)
        if missing > 0:
            self._lifts[group.name] = self._lifts.get(group.name, 0.0) + missing

    def choose(self, groups: Sequence[GroupView], now_s: float) -> GroupView:
        """The tenant with the smallest counter; ties by name."""
        chosen = min(groups, key=lambda group: (self.counter(group), group.name))
        self._next = self.counter(chosen)
        return chosen

    def admitted(self, request: RequestView, now_s: float) -> None:
        """Remember the counter of the tenant served last."""
        self._last = self._next

    def counter(self, group: GroupView) -> float:
        """The tenant's weighted service, lifts included."""
        served = self.prompt_weight * group.prompt_tokens_served + self.output_weight * group.output_tokens_served
        return served / self.weights.get(group.name, 1.0) + self._lifts.get(group.name, 0.0)
