"""Dominant resource fairness."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from policies.ordering import GroupOrdering
from policies.ordering.lifted_service import LiftedService
from policies.ordering.weights import check_weights
from policies.views import GroupView, RequestView


@dataclass(slots=True)
class DominantResourceFairness(GroupOrdering):
    """Serve the tenant whose dominant share is least.

    The resources are GPU time, taken as the tenant's share of all tokens computed for the tenants that wait, and KV
    memory, its share of the tokens that they hold. Shares are divided by the tenant's weight. GPU time adds up, and
    memory does not: so a tenant that comes back is lifted to the least present service of those that wait, or, if
    nobody does, to that of the tenant served last, as by ``vtc``.

    Source: Ghodsi et al., NSDI 2011; the choice of resources is our own.
    """

    hears_admitted: ClassVar[bool] = True
    keyed_by: ClassVar[Mapping[str, str]] = {"weights": "tenant"}
    weights: Mapping[str, float] = field(default_factory=dict)
    _computed: LiftedService = field(init=False, repr=False)
    _next: GroupView | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        check_weights(self.weights)
        self._computed = LiftedService(_tokens_computed, self.weights)

    def activated(self, group: GroupView, others: Sequence[GroupView]) -> None:
        """Lift a tenant that comes back."""
        self._computed.activated(group, others)

    def choose(self, groups: Sequence[GroupView], now_s: float) -> GroupView:
        """The tenant with the least dominant share; ties by name."""
        weight = self.weights.get
        computed = {group.name: self._computed(group) for group in groups}
        all_computed = max(sum(service * weight(name, 1.0) for name, service in computed.items()), 1.0)
        all_held = max(sum(group.context_tokens for group in groups), 1)

        def dominant_share(group: GroupView) -> float:
            held = group.context_tokens / weight(group.name, 1.0)
            return max(computed[group.name] / all_computed, held / all_held)

        self._next = min(groups, key=lambda group: (dominant_share(group), group.name))
        return self._next

    def admitted(self, request: RequestView, now_s: float) -> None:
        """Remember the tenant served last."""
        self._computed.admitted(self._next)


def _tokens_computed(group: GroupView) -> float:
    return group.prompt_tokens_served + group.output_tokens_served
