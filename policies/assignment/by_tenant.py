"""A pool for each tenant."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from policies.assignment import Assignment, check_known, place_of
from policies.views import PoolView, RoutedRequestView


@dataclass(frozen=True, slots=True)
class ByTenant(Assignment):
    """Send each tenant of `pools` to the pool of that name, all others to the pool `otherwise`, by default the first.

    Where pools have models of their own, this is how a request names its model.

    Source: the `model` field of the OpenAI API, by which gateways pick a deployment.
    """

    pools: Mapping[str, str] = field(default_factory=dict)
    otherwise: str | None = None

    keyed_by: ClassVar[Mapping[str, str]] = {"pools": "tenant"}

    def check_pools(self, names: Sequence[str]) -> None:
        """All that are named must be there."""
        for tenant, pool in self.pools.items():
            check_known(f"pools.{tenant}", pool, names)
        if self.otherwise is not None:
            check_known("otherwise", self.otherwise, names)

    def choose(self, request: RoutedRequestView, pools: Sequence[PoolView]) -> int:
        """The tenant's."""
        name = self.pools.get(request.tenant, self.otherwise)
        return 0 if name is None else place_of(pools, name)
