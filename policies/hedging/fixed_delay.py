"""A copy after a stated time."""

from dataclasses import dataclass

from policies.bounds import check_seconds
from policies.hedging import Hedging
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class FixedDelay(Hedging):
    """Send a copy of a request that has no token after ``after_s``.

    Source: hedged requests (Dean and Barroso, The Tail at Scale, CACM 2013).
    """

    after_s: float = 1.0

    def __post_init__(self) -> None:
        check_seconds(self, "after_s")

    def delay_s(self, request: RequestView) -> float | None:
        """The stated time."""
        return self.after_s
