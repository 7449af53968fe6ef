"""Who gives up KV memory when it runs short."""

from abc import ABC, abstractmethod

from policies.prediction import LengthPredictor
from policies.views import RequestView, RunningView


class Preemption(ABC):
    """Picks the victim; its blocks are freed, and it returns to the queue to have its tokens computed again."""

    @abstractmethod
    def victim(self, running: RunningView) -> RequestView:
        """The running request to preempt; ``running`` is never empty."""

    @property
    def predictors(self) -> tuple[LengthPredictor, ...]:
        """The length predictors that it asks, which must be told of arrivals and finishes."""
        return ()
