"""Preempt the least urgent request."""

from dataclasses import dataclass

from policies.preemption import Preemption
from policies.views import RequestView, RunningView


@dataclass(frozen=True, slots=True)
class LowestPriority(Preemption):
    """The request of the lowest level goes first, among equals the one that arrived last.

    Source: vLLM's policy priority.
    """

    def victim(self, running: RunningView) -> RequestView:
        """The least urgent."""
        return max(running, key=lambda request: (request.priority, request.arrival_s, request.number))
