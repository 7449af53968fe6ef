"""A bound on the queue."""

from dataclasses import dataclass

from policies.admission import Admission
from policies.bounds import check_counts
from policies.views import RequestView, ServiceView


@dataclass(frozen=True, slots=True)
class QueueLimit(Admission):
    """Reject a request that finds ``max_waiting_requests`` in the queues already.

    Source: own; the finite waiting room of queueing theory.
    """

    max_waiting_requests: int = 1000

    def __post_init__(self) -> None:
        check_counts(self, "max_waiting_requests", least=0)

    def rejects(self, request: RequestView, service: ServiceView, now_s: float) -> str | None:
        """Whether the queue is full."""
        return "the queue is full" if service.waiting_requests >= self.max_waiting_requests else None
