"""Iteration-level batching, prompts first and cut to fill each step."""

from dataclasses import dataclass, replace
from typing import ClassVar

from policies.batching import StepLimits
from policies.batching.prefill_first import PrefillFirst
from policies.views import ReplicaView


@dataclass(slots=True)
class ChunkedPrefillFirst(PrefillFirst):
    """As long as a prompt is unfinished or the next one fits, run a step of prompts alone; decode otherwise.

    A step of prompts has ``max_batched_tokens`` tokens if there are so many: the prompt that does not fit whole is cut,
    and its rest goes first in the next step, before others fill that up. ``receive_interval_steps`` is that of
    ``prefill-first``.

    Source: SGLang's chunked prefill (python/sglang/srt/managers/schedule_policy.py).
    """

    whole_prompts: ClassVar[bool] = False

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """Prompts alone if one is unfinished, or if the next fits and its time has come, decodes alone if not."""
        limits = PrefillFirst.limits(self, replica, now_s)
        if replica.prefilling_requests:
            return replace(limits, decode=False, admit=True, whole_prompts=False)
        return replace(limits, whole_prompts=False)
