"""Shortest prompt first, with a bound on how long a long prompt can be passed over."""

from dataclasses import dataclass

from policies.ordering import Ordering
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class ShortestPromptFirst(Ordering):
    """Serve short prompts first; waiting a second is worth ``tokens_per_s`` of prompt.

    Source: own.
    """

    tokens_per_s: float = 500.0

    def __post_init__(self) -> None:
        if self.tokens_per_s < 0:
            raise ValueError(f"tokens_per_s is {self.tokens_per_s}, expected a number of at least 0")

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """Prompt tokens, and more the later the request arrived."""
        return (request.prompt_tokens + self.tokens_per_s * request.arrival_s,)
