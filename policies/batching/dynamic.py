"""Dynamic batching."""

from dataclasses import dataclass
from typing import ClassVar

from policies.batching import Batching, StepLimits
from policies.bounds import LONGEST_S, check_counts, check_range
from policies.views import ReplicaView


@dataclass(frozen=True, slots=True)
class Dynamic(Batching):
    """Static batches that start when ``max_running_requests`` wait, or the first has waited ``window_s``.

    Source: Triton Inference Server, documentation of its dynamic batcher.
    """

    whole_prompts: ClassVar[bool] = True

    max_running_requests: int = 32
    window_s: float = 0.05
    max_batched_tokens: int = 65536

    def __post_init__(self) -> None:
        check_counts(self, "max_running_requests", "max_batched_tokens")
        check_range(self, 0.0, LONGEST_S, "window_s")

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """Whole prompts, admitted while nobody runs and the batch is full or its window over."""
        arrival_s = replica.oldest_arrival_s
        due_s = None if arrival_s is None else arrival_s + self.window_s
        ready = due_s is not None and (now_s >= due_s or replica.waiting_requests >= self.max_running_requests)
        idle = replica.running_requests == 0
        return StepLimits(
            self.max_batched_tokens,
            self.max_running_requests,
            self.max_batched_tokens,
            admit=idle and ready,
            whole_prompts=True,
            retry_at_s=due_s if idle and not ready else None,
        )
