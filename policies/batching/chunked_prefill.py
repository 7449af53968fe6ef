"""Chunked prefill under a token budget."""

from dataclasses import dataclass, field, replace

from policies.batching import Batching, StepLimits
from policies.bounds import check_counts, check_seconds
from policies.views import ReplicaView


@dataclass(frozen=True)
class ChunkedPrefill(Batching):
    """Decode every running request in every step and fill what is left of a token budget with prompt chunks.

    ``long_prefill_threshold_tokens`` bounds the chunk of any one prompt, so that a long one leaves room for others; a
    request alone on its replica is not bound by it (vLLM since pull request 57951). None: the budget is the only bound.

    With ``tpot_target_s`` the chunk adapts: beside requests that decode, a step prefills as many tokens as let it end
    within that time, by the engine's own price of a step, but at least ``min_chunk_tokens``, so that prompts go on
    where decodes alone take longer. Sarathi-Serve finds one budget for such a target beforehand (section 4.3); here it
    is found anew in every step, so it shrinks as more requests decode or their contexts grow.

    Source: Sarathi-Serve (Agrawal et al., OSDI 2024), as vLLM V1 runs it.
    """

    max_batched_tokens: int = 8192
    max_running_requests: int = 256
    long_prefill_threshold_tokens: int | None = None
    tpot_target_s: float | None = None
    min_chunk_tokens: int = 64
    _alone: StepLimits = field(init=False, repr=False, compare=False)
    _shared: StepLimits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = ("max_batched_tokens", "max_running_requests", "long_prefill_threshold_tokens", "min_chunk_tokens")
        check_counts(self, *names)
        check_seconds(self, "tpot_target_s")
        alone = StepLimits(self.max_batched_tokens, self.max_running_requests, self.max_batched_tokens)
        chunk = self.long_prefill_threshold_tokens
        object.__setattr__(self, "_alone", alone)
        object.__setattr__(self, "_shared", alone if chunk is None else replace(alone, max_chunk_tokens=chunk))

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """The same in every step, but for a lone request, or with a target."""
        if self._shared is not self._alone and replica.waiting_requests + replica.running_requests <= 1:
            return self._alone
        return self._shared if self.tpot_target_s is None else self._adapted(replica, self.tpot_target_s)

    def _adapted(self, replica: ReplicaView, target_s: float) -> StepLimits:
        decoding = replica.decoding_requests
        no_prompt = replica.running_requests == decoding and not replica.waiting_requests
        if no_prompt or not decoding:
            return self._shared
        most = self.max_batched_tokens - decoding
        chunk = min(self.min_chunk_tokens, most)
        while most > chunk:  # by halves: the greatest chunk that is within the target, or the least that is allowed
            middle = (chunk + most + 1) // 2
            if replica.step_s(middle) <= target_s:
                chunk = middle
            else:
                most = middle - 1
        return replace(self._shared, max_batched_tokens=decoding + chunk, stable_steps=1)
