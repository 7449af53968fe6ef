"""Shortest job first."""

from dataclasses import dataclass, field

from policies.ordering import Ordering
from policies.prediction import LengthPredictor
from policies.prediction.oracle import Oracle
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class ShortestJobFirst(Ordering):
    """Serve the request with the fewest predicted output tokens first.

    Without preemption: once admitted, a request runs to its end. Equal predictions reduce to first come, first served.

    Source: Smith, Naval Research Logistics Quarterly 1956; by predicted output Fu et al., NeurIPS 2024.
    """

    predictor: LengthPredictor = field(default_factory=Oracle)

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The predicted output, then the arrival."""
        return self.predictor.output_tokens(request), request.arrival_s

    @property
    def predictors(self) -> tuple[LengthPredictor, ...]:
        """The one that it asks."""
        return (self.predictor,)
