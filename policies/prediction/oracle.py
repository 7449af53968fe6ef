"""The true length."""

from dataclasses import dataclass, field
from typing import ClassVar

from policies.prediction import LengthPredictor
from policies.views import RequestView


@dataclass(slots=True)
class Oracle(LengthPredictor):
    """Knows every output length: the bound of what prediction can bring.

    Source: own.
    """

    hears_finished: ClassVar[bool] = True
    sees_truth: ClassVar[bool] = True
    corrected: bool = False
    _lengths: dict[int, int] = field(default_factory=dict, init=False, repr=False)

    def reveal(self, request: RequestView, output_tokens: int) -> None:
        """Note the length."""
        self._lengths[request.number] = output_tokens

    def estimate(self, request: RequestView) -> float:
        """The length."""
        return float(self._lengths[request.number])

    def finished(self, request: RequestView, output_tokens: int) -> None:
        """Forget the request."""
        self._lengths.pop(request.number, None)
