"""Batches of like requests."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from policies.batching import Batching, StepLimits
from policies.bounds import MOST, check_counts, check_value
from policies.horizon import FOREVER
from policies.views import ReplicaView, RequestView


@dataclass(slots=True)
class Bucketed(Batching):
    """Continuous batching of requests of one bucket at a time, by the length of their prompts or by their state.

    ``by: length``: all running requests have prompts of one bucket of lengths; ``edges_tokens`` are the upper ends of
    the buckets but the last. A request of another bucket waits, and holds up those behind it, until nobody runs; so
    order the queue by length, or state few buckets.

    ``by: state``: a step serves requests in one state, whole prompts or decodes, whichever are more: prompts wait until
    as many of them could run as decode.

    Source: own.
    """

    filters_admission: ClassVar[bool] = True
    whole_prompts: ClassVar[bool] = True

    by: Literal["length", "state"] = "length"
    edges_tokens: tuple[int, ...] = (512, 2048, 8192)
    max_batched_tokens: int = 8192
    max_running_requests: int = 256
    _bucket: int = field(default=-1, init=False, repr=False)

    def __post_init__(self) -> None:
        check_counts(self, "max_running_requests", "max_batched_tokens")
        if self.by not in ("length", "state"):
            raise ValueError(f"by is {self.by!r}, expected length or state")
        for place, edge in enumerate(self.edges_tokens):
            check_value(f"edges_tokens.{place}", edge, 1, MOST)
        if any(low >= high for low, high in zip(self.edges_tokens, self.edges_tokens[1:], strict=False)):
            raise ValueError(f"edges_tokens is {list(self.edges_tokens)}, expected rising numbers")

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """By length the same in every step; by state prompts alone or decodes alone."""
        if self.by == "length":
            return StepLimits(self.max_batched_tokens, self.max_running_requests, self.max_batched_tokens)
        blocks = replica.next_blocks
        prompts = min(replica.waiting_requests, self.max_running_requests - replica.running_requests)
        more = prompts >= max(replica.decoding_requests, 1)
        prefill = more and blocks is not None and blocks <= replica.free_blocks
        return StepLimits(
            self.max_batched_tokens,
            self.max_running_requests,
            self.max_batched_tokens,
            decode=not prefill,
            admit=prefill,
            whole_prompts=True,
            stable_steps=1 if replica.waiting_requests else FOREVER,
        )

    def accepts(self, request: RequestView, running: int) -> bool:
        """By length, whether the request is of the bucket that runs; the first to run sets it."""
        if self.by == "state":
            return True
        bucket = sum(request.prompt_tokens > edge for edge in self.edges_tokens)
        if running == 0:
            self._bucket = bucket
        return bucket == self._bucket
