"""The longest that is allowed."""

from dataclasses import dataclass

from policies.prediction import LengthPredictor
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class MaxTokens(LengthPredictor):
    """Expects every output to run to its limit, as a planner without any knowledge must.

    Source: Orca, which reserves memory for so many (Yu et al., OSDI 2022).
    """

    corrected: bool = False

    def estimate(self, request: RequestView) -> float:
        """The request's own limit."""
        return float(request.max_output_tokens)
