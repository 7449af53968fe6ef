"""How much of what running requests may still generate is kept free for them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from policies.views import CommittedView


class Commitment(ABC):
    """Says how many tokens of memory are set aside for what a running request may still generate."""

    @abstractmethod
    def share(self, request: CommittedView) -> float:
        """The share of what a request may still generate that is set aside for it."""

    def decoded(self, steps: int) -> None:
        """Take note of decode steps that memory had room for."""

    def retracted(self, survivors: Iterable[CommittedView]) -> None:
        """Take note that memory ran short, and who is left."""

    def idle(self) -> None:
        """Take note that nobody is there."""
