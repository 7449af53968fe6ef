"""Virtual token counter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from policies.bounds import MOST_WEIGHT, check_range
from policies.ordering import GroupOrdering
from policies.ordering.lifted_service import LiftedService
from policies.ordering.weights import check_weights
from policies.views import GroupView, RequestView


@dataclass(slots=True)
class VirtualTokenCounter(GroupOrdering):
    """Serve the tenant that has been served least, tokens counted with weights.

    A prompt token counts ``prompt_weight``, an output token ``output_weight``, both divided by the tenant's weight
    (default 1). A tenant that comes back is lifted to the least present counter of those that wait, or, if nobody does,
    to the present counter of the tenant served last (algorithm 2 there): nobody saves up service while away.

    Source: Sheng et al., OSDI 2024.
    """

    hears_admitted: ClassVar[bool] = True
    keyed_by: ClassVar[Mapping[str, str]] = {"weights": "tenant"}
    prompt_weight: float = 1.0
    output_weight: float = 2.0
    weights: Mapping[str, float] = field(default_factory=dict)
    counter: LiftedService = field(init=False, repr=False)
    """The tenant's weighted service, lifts included."""
    _next: GroupView | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_range(self, 0.0, MOST_WEIGHT, "prompt_weight", "output_weight")
        check_weights(self.weights)
        self.counter = LiftedService(self._served, self.weights)

    def activated(self, group: GroupView, others: Sequence[GroupView]) -> None:
        """Lift the counter of a tenant that comes back."""
        self.counter.activated(group, others)

    def choose(self, groups: Sequence[GroupView], now_s: float) -> GroupView:
        """The tenant with the smallest counter; ties by name."""
        self._next = min(groups, key=lambda group: (self.counter(group), group.name))
        return self._next

    def admitted(self, request: RequestView, now_s: float) -> None:
        """Remember the tenant served last."""
        self.counter.admitted(self._next)

    def _served(self, group: GroupView) -> float:
        return self.prompt_weight * group.prompt_tokens_served + self.output_weight * group.output_tokens_served
