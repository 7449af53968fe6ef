"""Users divided among pools: a canary, or an A/B test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from policies.assignment import Assignment, check_known, place_of
from policies.bounds import MOST_SEED, check_range
from policies.chance import uniform
from policies.views import PoolView, RoutedRequestView


@dataclass(frozen=True, slots=True)
class Split(Assignment):
    """Give each pool of `shares` that share of the users, by chance; a user stays in one pool.

    The first pool that `shares` does not name gets the rest. A user is a session, or without sessions a tenant, or
    without either a request.

    Source: overlapping experiments by hash of the user (Tang et al., KDD 2010).
    """

    shares: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        check_range(self, 0.0, 1.0, "shares")
        check_range(self, 0, MOST_SEED, "seed")
        if sum(self.shares.values()) > 1 + 1e-9:
            raise ValueError(f"shares add up to {sum(self.shares.values())}, expected at most 1")

    def check_pools(self, names: Sequence[str]) -> None:
        """All that are named must be there, and one for the rest."""
        for pool in self.shares:
            check_known("shares", pool, names)
        if sum(self.shares.values()) < 1 - 1e-9 and not set(names) - set(self.shares):
            raise ValueError(f"shares add up to {sum(self.shares.values())}, expected 1, as all pools are named")

    def choose(self, request: RoutedRequestView, pools: Sequence[PoolView]) -> int:
        """The user's."""
        user = request.session
        if user is None:
            user = crc32(request.tenant.encode()) if request.tenant else request.number
        drawn = uniform(self.seed, user)
        for name, share in self.shares.items():
            if drawn < share:
                return place_of(pools, name)
            drawn -= share
        return next((place for place, pool in enumerate(pools) if pool.name not in self.shares), 0)
