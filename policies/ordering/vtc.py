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
    _next: GroupView | None = field(default=None, init=False, repr=False)
    _last: GroupView | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("prompt_weight", "output_weight"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}, expected a number of at least 0")
        for tenant, weight in self.weights.items():
            if weight <= 0:
                raise ValueError(f"weights.{tenant} is {weight}, expected a number greater than 0")

    def activated(self, group: GroupView, others: Sequence[GroupView]) -> None:
        """Lift the counter of a tenant that comes back; alone, to what that of the tenant served last is by now."""
        peers = others or ([] if self._last is None else [self._last])
        missing = min(map(self.counter, peers), default=0.0) - self.counter(group)
        if missing > 0:
            self._lifts[group.name] = self._lifts.get(group.name, 0.0) + missing

    def choose(self, groups: Sequence[GroupView], now_s: float) -> GroupView:
        """The tenant with the smallest counter; ties by name."""
        self._next = min(groups, key=lambda group: (self.counter(group), group.name))
        return self._next

    def admitted(self, request: RequestView, now_s: float) -> None:
        """Remember the tenant served last."""
        self._last = self._next

    def counter(self, group: GroupView) -> float:
        """The tenant's weighted service, lifts included."""
        served = self.prompt_weight * group.prompt_tokens_served + self.output_weight * group.output_tokens_served
        return served / self.weights.get(group.name, 1.0) + self._lifts.get(group.name, 0.0)
