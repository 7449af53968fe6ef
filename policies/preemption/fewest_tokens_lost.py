"""Preempt where least is lost."""

from dataclasses import dataclass

from policies.preemption import Preemption
from policies.views import RequestView, RunningView


@dataclass(frozen=True, slots=True)
class FewestTokensLost(Preemption):
    """The request whose prompt and output so far are shortest goes first: they must be computed again."""

    def victim(self, running: RunningView) -> RequestView:
        """The shortest so far; among equals the one that arrived last."""
        return min(running, key=lambda request: (request.prompt_tokens + request.generated_tokens, -request.number))
