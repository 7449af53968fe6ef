"""A batch limit that follows the queue."""

from dataclasses import dataclass

from policies.batching import Batching, StepLimits
from policies.bounds import check_counts
from policies.views import ReplicaView


@dataclass(frozen=True, slots=True)
class QueueAware(Batching):
    """Chunked prefill with few running requests while the queue is short, more as it grows.

    The limit rises in a straight line from ``min_running_requests`` with nobody waiting to ``max_running_requests``
    with ``full_at_waiting``: short queues get quick tokens, long ones throughput.

    Source: own.
    """

    min_running_requests: int = 32
    max_running_requests: int = 256
    full_at_waiting: int = 64
    max_batched_tokens: int = 8192

    def __post_init__(self) -> None:
        check_counts(self, "min_running_requests", "max_running_requests", "full_at_waiting", "max_batched_tokens")
        if self.min_running_requests > self.max_running_requests:
            raise ValueError(
                f"min_running_requests is {self.min_running_requests}, expected at most {self.max_running_requests}"
            )

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """The limit for this queue; any arrival may change it, so it stands for one step."""
        share = min(replica.waiting_requests / self.full_at_waiting, 1.0)
        running = self.min_running_requests + int(share * (self.max_running_requests - self.min_running_requests))
        return StepLimits(self.max_batched_tokens, running, self.max_batched_tokens, stable_steps=1)
