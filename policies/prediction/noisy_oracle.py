"""The true length with an error of a given size."""

from dataclasses import dataclass, field
from math import exp, log, sqrt
from typing import ClassVar

from policies.bounds import MOST_SEED, check_range
from policies.chance import normal
from policies.prediction import LengthPredictor
from policies.views import RequestView

_GREATEST_ERROR = 1000.0


@dataclass(slots=True)
class NoisyOracle(LengthPredictor):
    """The true length times a lognormal factor of median 1; ``relative_error`` is its deviation over its mean.

    Source: own.
    """

    hears_finished: ClassVar[bool] = True
    sees_truth: ClassVar[bool] = True
    relative_error: float = 0.5
    seed: int = 0
    corrected: bool = False
    _estimates: dict[int, float] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_range(self, 0.0, _GREATEST_ERROR, "relative_error")
        check_range(self, 0, MOST_SEED, "seed")

    def reveal(self, request: RequestView, output_tokens: int) -> None:
        """Draw the error of this request."""
        sigma = sqrt(log(1 + self.relative_error**2))
        self._estimates[request.number] = output_tokens * exp(sigma * normal(self.seed, request.number))

    def estimate(self, request: RequestView) -> float:
        """The length as mistaken."""
        return self._estimates[request.number]

    def finished(self, request: RequestView, output_tokens: int) -> None:
        """Forget the request."""
        self._estimates.pop(request.number, None)
