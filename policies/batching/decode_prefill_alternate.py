"""Phases of decoding and of prefill in turn."""

from dataclasses import dataclass, field
from typing import ClassVar

from policies.batching import Batching, StepLimits
from policies.bounds import check_counts
from policies.horizon import FOREVER
from policies.views import ReplicaView, RequestView


@dataclass(slots=True)
class DecodePrefillAlternate(Batching):
    """After every ``decode_steps`` steps of decoding, one step of whole prompts, if any wait.

    Sliced in time, so that a burst of prompts can stop running requests for one step only.

    Source: own.
    """

    filters_admission: ClassVar[bool] = True
    whole_prompts: ClassVar[bool] = True

    decode_steps: int = 8
    max_batched_tokens: int = 8192
    max_running_requests: int = 256
    _now: int = field(default=0, init=False, repr=False)
    _next_prefill: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        check_counts(self, "decode_steps", "max_running_requests", "max_batched_tokens")

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """Prompts alone if it is their turn and the next fits, decodes alone if not."""
        blocks = replica.next_blocks
        due = replica.decode_steps >= self._next_prefill or replica.decoding_requests == 0
        room = replica.running_requests < self.max_running_requests
        prefill = due and blocks is not None and room and blocks <= replica.free_blocks
        self._now = replica.decode_steps
        return StepLimits(
            self.max_batched_tokens,
            self.max_running_requests,
            self.max_batched_tokens,
            decode=not prefill,
            admit=prefill,
            whole_prompts=True,
            stable_steps=FOREVER if due else self._next_prefill - replica.decode_steps,
        )

    def accepts(self, request: RequestView, running: int) -> bool:
        """Yes; only now that a prompt is really let in is the turn of prompts over."""
        self._next_prefill = self._now + self.decode_steps
        return True
