"""The mean of recent outputs."""

from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar

from policies.bounds import MOST, check_counts, check_range
from policies.prediction import LengthPredictor
from policies.views import RequestView


@dataclass(slots=True)
class MovingAverage(LengthPredictor):
    """Expects the mean of the last ``window`` finished outputs, ``initial_tokens`` before there is any.

    Source: own.
    """

    hears_finished: ClassVar[bool] = True
    window: int = 100
    initial_tokens: float = 256.0
    corrected: bool = False
    _recent: deque[int] = field(default_factory=deque, init=False, repr=False)
    _sum: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        check_counts(self, "window")
        check_range(self, 1.0, MOST, "initial_tokens")

    def estimate(self, request: RequestView) -> float:
        """The mean so far."""
        return self._sum / len(self._recent) if self._recent else self.initial_tokens

    def finished(self, request: RequestView, output_tokens: int) -> None:
        """Count the output in, and the oldest out."""
        self._recent.append(output_tokens)
        self._sum += output_tokens
        if len(self._recent) > self.window:
            self._sum -= self._recent.popleft()
