"""Batches of like lengths."""

from dataclasses import dataclass, field

from policies.batching import Batching, StepLimits, at_least_one
from policies.views import ReplicaView, RequestView


@dataclass(slots=True)
class Bucketed(Batching):
    """Continuous batching in which all running requests have prompts of one bucket of lengths.

    ``edges_tokens`` are the upper ends of the buckets but the last. A request of another bucket waits, and holds up
    those behind it, until nobody runs; so order the queue by length, or state few buckets.
    """

    edges_tokens: tuple[int, ...] = (512, 2048, 8192)
    max_batched_tokens: int = 8192
    max_running_requests: int = 256
    _bucket: int = field(default=-1, init=False, repr=False)

    def __post_init__(self) -> None:
        at_least_one(self, "max_running_requests", "max_batched_tokens")
        if any(low >= high for low, high in zip(self.edges_tokens, self.edges_tokens[1:], strict=False)):
            raise ValueError(f"edges_tokens is {list(self.edges_tokens)}, expected rising numbers")

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """The same in every step."""
        return StepLimits(self.max_batched_tokens, self.max_running_requests, self.max_batched_tokens)

    def accepts(self, request: RequestView, running: int) -> bool:
        """Whether the request is of the bucket that runs; the first to run sets it."""
        bucket = sum(request.prompt_tokens > edge for edge in self.edges_tokens)
        if running == 0:
            self._bucket = bucket
        return bucket == self._bucket
