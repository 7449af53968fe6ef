"""Prompts first, once enough of them wait."""

from dataclasses import dataclass, field
from typing import ClassVar

from policies.batching import Batching, StepLimits
from policies.bounds import check_counts, check_range
from policies.horizon import FOREVER
from policies.views import ReplicaView, RequestView


@dataclass(slots=True)
class WaitingServed(Batching):
    """Pause decodes for a step of whole prompts when enough requests wait, in proportion to those that run.

    Enough are ``waiting_served_ratio`` times as many, rounded down; after ``max_waiting_steps`` steps in which nobody
    was let in, one is enough. Between two steps of prompts there is one of decodes at the least. Unlike there, a batch
    that memory or budget make smaller than that is let in all the same.

    Source: the router of Hugging Face's Text Generation Inference (``backends/v3/src/backend.rs``).
    """

    filters_admission: ClassVar[bool] = True
    whole_prompts: ClassVar[bool] = True

    waiting_served_ratio: float = 0.3
    max_waiting_steps: int = 20
    max_batched_tokens: int = 4145
    max_running_requests: int = 128
    _now: int = field(default=0, init=False, repr=False)
    _latest_prefill: int = field(default=-1, init=False, repr=False)

    def __post_init__(self) -> None:
        check_range(self, 0.0, 1e6, "waiting_served_ratio")
        check_counts(self, "max_waiting_steps", "max_batched_tokens", "max_running_requests")

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """Prompts alone if it is their turn and the next fits, decodes alone if not."""
        blocks, waiting = replica.next_blocks, replica.waiting_requests
        self._now = replica.decode_steps
        decoded = self._now - self._latest_prefill
        idle = replica.decoding_requests == 0
        few = waiting < int(replica.running_requests * self.waiting_served_ratio)
        due = idle or (decoded > 0 and (not few or decoded + 1 >= self.max_waiting_steps))
        room = replica.running_requests < self.max_running_requests
        fits = blocks is not None and room and blocks <= replica.free_blocks
        return StepLimits(
            self.max_batched_tokens,
            self.max_running_requests,
            self.max_batched_tokens,
            decode=not (due and fits),
            admit=due and fits,
            whole_prompts=True,
            stable_steps=1 if fits else FOREVER,
        )

    def accepts(self, request: RequestView, running: int) -> bool:
        """Yes; the wait for a step of prompts begins anew."""
        self._latest_prefill = self._now
        return True
