"""Preempt the most recent request."""

from dataclasses import dataclass

from policies.preemption import Preemption
from policies.views import RequestView, RunningView


@dataclass(frozen=True, slots=True)
class Latest(Preemption):
    """The request admitted last goes first, so that the oldest always makes progress.

    Source: vLLM (Kwon et al., SOSP 2023, section 4.5).
    """

    def victim(self, running: RunningView) -> RequestView:
        """The last in order of admission."""
        return next(reversed(running))
