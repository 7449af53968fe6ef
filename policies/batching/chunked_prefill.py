"""Chunked prefill under a token budget."""

from dataclasses import dataclass, field, replace

from policies.batching import Batching, StepLimits, at_least_one
from policies.views import ReplicaView


@dataclass(frozen=True)
class ChunkedPrefill(Batching):
    """Decode every running request in every step and fill what is left of a fixed token budget with prompt chunks.

    The scheme of Sarathi-Serve (Agrawal et al., OSDI 2024) as vLLM V1 runs it. ``long_prefill_threshold_tokens`` bounds
    the chunk of any one prompt, so that a long one leaves room for others; a request alone on its replica is not bound
    by it (vLLM since pull request 57951). None: the budget is the only bound.
    """

    max_batched_tokens: int = 8192
    max_running_requests: int = 256
    long_prefill_threshold_tokens: int | None = None
    _alone: StepLimits = field(init=False, repr=False, compare=False)
    _shared: StepLimits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        at_least_one(self, "max_batched_tokens", "max_running_requests", "long_prefill_threshold_tokens")
        alone = StepLimits(self.max_batched_tokens, self.max_running_requests, self.max_batched_tokens)
        chunk = self.long_prefill_threshold_tokens
        object.__setattr__(self, "_alone", alone)
        object.__setattr__(self, "_shared", alone if chunk is None else replace(alone, max_chunk_tokens=chunk))

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """The same in every step, but for a lone request."""
        if self._shared is not self._alone and replica.waiting_requests + replica.running_requests <= 1:
            return self._alone
        return self._shared
