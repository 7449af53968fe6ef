"""Replicas of their own for some tenants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from policies.bounds import MOST, check_value
from policies.routing import Routing
from policies.views import RoutedRequestView, RouterView


@dataclass(slots=True)
class Dedicated(Routing):
    """Give each tenant of `tenants` so many replicas to itself, from the first on; others share those left.

    Among its replicas each tenant's requests take turns. Nothing that one tenant sends then changes when another's
    requests run or what they find cached, except by what stands before the replicas: admission policies, and an API
    server that tokenises.

    Source: single-tenant deployments of hosted models, as cloud providers sell them.
    """

    tenants: Mapping[str, int] = field(default_factory=dict)
    _next: dict[str | None, int] = field(default_factory=dict, init=False, repr=False)

    keyed_by: ClassVar[Mapping[str, str]] = {"tenants": "tenant"}

    def __post_init__(self) -> None:
        for tenant, replicas in self.tenants.items():
            check_value(f"tenants.{tenant}", replicas, 1, MOST)

    def check_replicas(self, replicas: int) -> None:
        """All that are given away must be there, and one must be left for the others."""
        taken = sum(self.tenants.values())
        if taken >= replicas:
            raise ValueError(f"tenants takes {taken} replicas, expected at most {replicas - 1} of {replicas}")

    def choose(self, request: RoutedRequestView, replicas: Sequence[RouterView]) -> int:
        """The next in turn of the tenant's own."""
        first, count, whose = 0, len(replicas) - sum(self.tenants.values()), None
        for tenant, own in self.tenants.items():
            if tenant == request.tenant:
                count, whose = own, tenant
                break
            first += own
        turn = self._next.get(whose, 0)
        self._next[whose] = turn + 1
        return first + turn % count
