"""How long an output will be, as far as the service can guess."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from policies.views import RequestView


class LengthPredictor(ABC):
    """Estimates the output length of a request; the only thing about it that other policies may ask.

    With ``corrected``, a request that has outlived its estimate is expected to generate twice what it has.
    """

    paired_hooks: ClassVar[Mapping[str, str]] = {"reveal": "sees_truth", "finished": "hears_finished"}
    hears_finished: ClassVar[bool] = False
    """Whether ``finished`` is told of complete requests."""
    sees_truth: ClassVar[bool] = False
    """Whether the simulator reveals true lengths to it on arrival; only predictors that imitate errors ask for that."""

    corrected: bool

    def output_tokens(self, request: RequestView) -> float:
        """The request's output tokens in all, those already generated included; at least 1."""
        estimate = max(self.estimate(request), 1.0)
        generated = request.generated_tokens
        return 2.0 * generated if self.corrected and generated >= estimate else estimate

    def remaining_tokens(self, request: RequestView) -> float:
        """Output tokens still to come; 0 for a request that has outlived its estimate."""
        return max(self.output_tokens(request) - request.generated_tokens, 0.0)

    @property
    def learns(self) -> bool:
        """Whether an estimate may change as other requests finish."""
        return self.hears_finished and not self.sees_truth

    @abstractmethod
    def estimate(self, request: RequestView) -> float:
        """The estimate on arrival."""

    def reveal(self, request: RequestView, output_tokens: int) -> None:
        """Take in the true length of an arriving request; called only where ``sees_truth``."""

    def finished(self, request: RequestView, output_tokens: int) -> None:
        """Learn from a request that is complete; one that ``sees_truth`` need only forget it, and is told of all."""
