"""Dominant resource fairness."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policies.ordering import GroupOrdering
from policies.views import GroupView


@dataclass(frozen=True, slots=True)
class DominantResourceFairness(GroupOrdering):
    """Serve the tenant whose dominant share is least (Ghodsi et al., NSDI 2011).

    The resources are GPU time, taken as the tenant's share of all tokens computed for the tenants that wait, and KV
    memory, its share of the tokens that they hold. Shares are divided by the tenant's weight.
    """

    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if any(weight <= 0 for weight in self.weights.values()):
            raise ValueError(f"weights is {dict(self.weights)}, expected numbers greater than 0")

    def choose(self, groups: Sequence[GroupView], now_s: float) -> GroupView:
        """The tenant with the least dominant share; ties by name."""
        computed = {group.name: group.prompt_tokens_served + group.output_tokens_served for group in groups}
        all_computed = max(sum(computed.values()), 1)
        all_held = max(sum(group.context_tokens for group in groups), 1)

        def dominant_share(group: GroupView) -> float:
            share = max(computed[group.name] / all_computed, group.context_tokens / all_held)
            return share / self.weights.get(group.name, 1.0)

        return min(groups, key=lambda group: (dominant_share(group), group.name))
