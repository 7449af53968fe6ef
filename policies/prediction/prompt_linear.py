"""A straight line from prompt length to output length."""

from dataclasses import dataclass, field
from typing import ClassVar

from policies.bounds import MOST, check_range
from policies.prediction import LengthPredictor
from policies.views import RequestView


@dataclass(slots=True)
class PromptLinear(LengthPredictor):
    """Expects what the least-squares line through all finished requests says of the prompt's length.

    ``initial_tokens`` stands in until two requests with different prompts have finished.

    Source: own; least squares.
    """

    hears_finished: ClassVar[bool] = True
    initial_tokens: float = 256.0
    corrected: bool = False
    _count: int = field(default=0, init=False, repr=False)
    _prompts: int = field(default=0, init=False, repr=False)
    _outputs: int = field(default=0, init=False, repr=False)
    _prompts_squared: int = field(default=0, init=False, repr=False)
    _products: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        check_range(self, 1.0, MOST, "initial_tokens")

    def estimate(self, request: RequestView) -> float:
        """The line's value."""
        spread = self._count * self._prompts_squared - self._prompts**2
        if not spread:
            return self.initial_tokens
        slope = (self._count * self._products - self._prompts * self._outputs) / spread
        return (self._outputs - slope * self._prompts) / self._count + slope * request.prompt_tokens

    def finished(self, request: RequestView, output_tokens: int) -> None:
        """Count the request in; the sums are whole numbers, so that no precision is lost."""
        self._count += 1
        self._prompts += request.prompt_tokens
        self._outputs += output_tokens
        self._prompts_squared += request.prompt_tokens**2
        self._products += request.prompt_tokens * output_tokens
