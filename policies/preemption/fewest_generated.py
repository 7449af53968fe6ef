"""Preempt who has generated least."""

from collections.abc import Sequence
from dataclasses import dataclass

from policies.preemption import Preemption
from policies.views import RequestView, RunningView


@dataclass(frozen=True, slots=True)
class FewestGenerated(Preemption):
    """The request with the fewest output tokens goes first, among equals the longest prompt, then the last admitted.

    With ``by_priority`` the least urgent level goes before all that.

    Source: SGLang's order of retraction (``retraction_policy`` length and priority).
    """

    by_priority: bool = False

    def victim(self, running: RunningView) -> RequestView:
        """The last of those to keep."""
        return self.keep_first(list(running))[-1]

    def keep_first(self, running: Sequence[RequestView]) -> list[RequestView]:
        """All of them, whom to keep longest first; equals stay in their order."""
        return sorted(running, key=self._worth, reverse=True)

    def _worth(self, request: RequestView) -> tuple[int, ...]:
        worth = (request.generated_tokens, -request.prompt_tokens)
        return (-request.priority, *worth) if self.by_priority else worth
