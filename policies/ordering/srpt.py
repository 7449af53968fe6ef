"""Shortest remaining processing time."""

from dataclasses import dataclass, field
from typing import ClassVar

from policies.horizon import FOREVER
from policies.ordering import Ordering
from policies.prediction import LengthPredictor
from policies.prediction.oracle import Oracle
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class ShortestRemainingFirst(Ordering):
    """Run the requests with the fewest output tokens still to come, preempting others for them (Schrage 1968).

    Remaining work of running requests only falls, so no waiting request overtakes one meanwhile; only where estimates
    are corrected as tokens appear can that change from step to step.
    """

    preemptive: ClassVar[bool] = True
    predictor: LengthPredictor = field(default_factory=Oracle)

    @property
    def stable_steps(self) -> int:  # type: ignore[override]
        """One step where estimates are corrected."""
        return 1 if self.predictor.corrected else FOREVER

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The predicted remaining output, then the arrival."""
        return self.predictor.remaining_tokens(request), request.arrival_s

    @property
    def predictors(self) -> tuple[LengthPredictor, ...]:
        """The one that it asks."""
        return (self.predictor,)
