"""A token budget steered by latency."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from policies.batching import Batching, StepLimits
from policies.bounds import check_counts, check_seconds
from policies.views import ReplicaView, RequestView


@dataclass(slots=True)
class SloFeedback(Batching):
    """Chunked prefill whose token budget shrinks while P99 TPOT misses its limit, and grows while only P99 TTFT does.

    Additive increase, multiplicative decrease, judged over the last ``window`` finished requests, once per ``every`` of
    them: a smaller budget makes steps shorter, a larger one prompts quicker. Limits that are not stated are the
    tightest objectives of the scenario, if it has any.

    Source: own; additive increase, multiplicative decrease is Chiu and Jain's, 1989.
    """

    hears_finished: ClassVar[bool] = True
    from_objectives: ClassVar[Mapping[str, str]] = {"ttft_p99_s": "ttft_s", "tpot_p99_s": "tpot_s"}
    ttft_p99_s: float = 1.0
    tpot_p99_s: float = 0.05
    min_batched_tokens: int = 512
    max_batched_tokens: int = 8192
    max_running_requests: int = 256
    window: int = 200
    every: int = 20
    _budget: int = field(default=0, init=False, repr=False)
    _since: int = field(default=0, init=False, repr=False)
    _ttfts_s: deque[float] = field(default_factory=deque, init=False, repr=False)
    _tpots_s: deque[float] = field(default_factory=deque, init=False, repr=False)

    def __post_init__(self) -> None:
        check_counts(self, "min_batched_tokens", "max_batched_tokens", "max_running_requests", "window", "every")
        check_seconds(self, "ttft_p99_s", "tpot_p99_s")
        if self.min_batched_tokens > self.max_batched_tokens:
            raise ValueError(
                f"min_batched_tokens is {self.min_batched_tokens}, expected at most {self.max_batched_tokens}"
            )
        self._budget = self.max_batched_tokens

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """The budget as it stands, or as many as decode and one more; it changes only when a request finishes."""
        budget = min(max(self._budget, replica.decoding_requests + 1), self.max_batched_tokens)
        return StepLimits(budget, self.max_running_requests, budget)

    def finished(self, request: RequestView, ttft_s: float, tpot_s: float | None) -> None:
        """Judge, if it is time to."""
        self._ttfts_s.append(ttft_s)
        if tpot_s is not None:
            self._tpots_s.append(tpot_s)
        for recent in (self._ttfts_s, self._tpots_s):
            if len(recent) > self.window:
                recent.popleft()
        self._since += 1
        if self._since == self.every:
            self._since = 0
            if _p99(self._tpots_s) > self.tpot_p99_s:
                self._budget = max(self._budget // 2, self.min_batched_tokens)
            elif _p99(self._ttfts_s) > self.ttft_p99_s:
                self._budget = min(self._budget + self.min_batched_tokens, self.max_batched_tokens)


def _p99(values: deque[float]) -> float:
    return sorted(values)[int(0.99 * (len(values) - 1))] if values else 0.0
