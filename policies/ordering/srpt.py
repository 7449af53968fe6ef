"""Shortest remaining processing time."""

from dataclasses import dataclass, field
from math import ceil
from typing import ClassVar

from policies.horizon import FOREVER
from policies.ordering import Ordering
from policies.prediction import LengthPredictor
from policies.prediction.oracle import Oracle
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class ShortestRemainingFirst(Ordering):
    """Run the requests with the fewest output tokens still to come, preempting others for them.

    Remaining work of running requests only falls, so no waiting request overtakes one meanwhile; only where estimates
    are corrected as tokens appear can that change from step to step. Of requests that have outlived their estimates the
    one furthest beyond comes first.

    Source: Schrage, Operations Research 1968.
    """

    foresees_rises: ClassVar[bool] = True
    preemptive: ClassVar[bool] = True
    falls_by_token: ClassVar[bool] = True
    predictor: LengthPredictor = field(default_factory=Oracle)

    @property
    def stable_steps(self) -> int:  # type: ignore[override]
        """One step where estimates are corrected."""
        return 1 if self.predictor.corrected else FOREVER

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The predicted remaining output, then the arrival."""
        return self.predictor.output_tokens(request) - request.generated_tokens, request.arrival_s

    def tokens_until_rise(self, request: RequestView) -> int:
        """Until the request has outlived its estimate, where that is then corrected."""
        if not self.predictor.corrected:
            return FOREVER
        return max(ceil(self.predictor.estimate(request)) - request.generated_tokens, 1)

    @property
    def predictors(self) -> tuple[LengthPredictor, ...]:
        """The one that it asks."""
        return (self.predictor,)
