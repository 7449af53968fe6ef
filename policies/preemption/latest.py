"""Preempt the most recent request."""

from dataclasses import dataclass

from policies.preemption import Preemption
from policies.views import RequestView, RunningView


@dataclass(frozen=True, slots=True)
class Latest(Preemption):
    """The request admitted last goes first, so that the oldest always makes progress (vLLM's rule)."""

    def victim(self, running: RunningView) -> RequestView:
        """The last in order of admission."""
        return next(reversed(running))
