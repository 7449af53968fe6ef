"""When a request is sent a second time, to another replica."""

from abc import ABC, abstractmethod

from policies.views import RequestView


class Hedging(ABC):
    """Says for how long a request may be without its first token before a copy of it is sent to another replica.

    The first of the two to have a token goes on, the other is withdrawn.
    """

    @abstractmethod
    def delay_s(self, request: RequestView) -> float | None:
        """Seconds from now, when the request is sent to its replica; None if no copy of it is ever sent."""

    def answered(self, request: RequestView, ttft_s: float) -> None:
        """Take note that a request is complete, and how long it waited for its first token."""
