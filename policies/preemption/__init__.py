"""Who gives up KV memory when it runs short."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from policies.prediction import LengthPredictor
from policies.views import RequestView, RunningView


class Preemption(ABC):
    """Picks the victim; its blocks are freed, and it returns to the queue to have its tokens computed again."""

    @abstractmethod
    def victim(self, running: RunningView) -> RequestView:
        """The running request to preempt; ``running`` is never empty."""

    def keep_first(self, running: Sequence[RequestView]) -> list[RequestView]:
        """All running requests, whom to keep longest first: where several may have to go, the last goes first."""
        left, victims = list(running), []
        while left:
            victims.append(self.victim(left))
            left.remove(victims[-1])
        return victims[::-1]

    @property
    def predictors(self) -> tuple[LengthPredictor, ...]:
        """The length predictors that it asks, which must be told of arrivals and finishes."""
        return ()
