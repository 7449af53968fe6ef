"""Preempt the request with most still to do."""

from dataclasses import dataclass, field

from policies.prediction import LengthPredictor
from policies.prediction.oracle import Oracle
from policies.preemption import Preemption
from policies.views import RequestView, RunningView


@dataclass(frozen=True, slots=True)
class LongestRemaining(Preemption):
    """The request with the most output still to come goes first: it would hold its memory longest.

    Source: own.
    """

    predictor: LengthPredictor = field(default_factory=Oracle)

    def victim(self, running: RunningView) -> RequestView:
        """The one furthest from its end; among equals the one that arrived last."""
        return max(running, key=lambda request: (self.predictor.remaining_tokens(request), request.number))

    @property
    def predictors(self) -> tuple[LengthPredictor, ...]:
        """The one that it asks."""
        return (self.predictor,)
