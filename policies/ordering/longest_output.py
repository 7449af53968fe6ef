"""Longest output first."""

from dataclasses import dataclass

from policies.ordering import Ordering
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class LongestOutputFirst(Ordering):
    """Serve the request that may generate most tokens first; equal ones as they were queued.

    Source: SGLang's lof.
    """

    requeues_last = True

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """The limit of its output, the greatest first."""
        return (-request.max_output_tokens,)
