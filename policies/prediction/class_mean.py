"""The mean of each class of requests."""

from dataclasses import dataclass, field
from typing import ClassVar

from policies.bounds import MOST, check_range
from policies.prediction import LengthPredictor
from policies.views import RequestView


@dataclass(slots=True)
class ClassMean(LengthPredictor):
    """Expects the mean output of the finished requests of the same tenant and priority, and of a like prompt.

    Prompts are alike if their lengths lie between the same powers of two. ``initial_tokens`` stands in for a class of
    which none has finished yet.

    Source: own.
    """

    hears_finished: ClassVar[bool] = True
    initial_tokens: float = 256.0
    corrected: bool = False
    _counts: dict[tuple[str, int, int], int] = field(default_factory=dict, init=False, repr=False)
    _sums: dict[tuple[str, int, int], int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_range(self, 1.0, MOST, "initial_tokens")

    def estimate(self, request: RequestView) -> float:
        """The mean of its class so far."""
        count = self._counts.get(_class_of(request), 0)
        return self._sums[_class_of(request)] / count if count else self.initial_tokens

    def finished(self, request: RequestView, output_tokens: int) -> None:
        """Count the output in."""
        kind = _class_of(request)
        self._counts[kind] = self._counts.get(kind, 0) + 1
        self._sums[kind] = self._sums.get(kind, 0) + output_tokens


def _class_of(request: RequestView) -> tuple[str, int, int]:
    return request.tenant, request.priority, request.prompt_tokens.bit_length()
