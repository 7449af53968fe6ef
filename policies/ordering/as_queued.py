"""In the order in which requests were queued."""

from dataclasses import dataclass

from policies.ordering import Ordering
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class AsQueued(Ordering):
    """Serve requests in the order in which they were queued; a preempted request queues again behind all others.

    Source: SGLang's fcfs.
    """

    requeues_last = True

    def key(self, request: RequestView, now_s: float) -> tuple[float, ...]:
        """Nothing tells one from another."""
        return ()
