"""Iteration-level batching, prompts first."""

from dataclasses import dataclass
from typing import ClassVar

from policies.batching import Batching, StepLimits
from policies.bounds import check_counts
from policies.views import ReplicaView


@dataclass(frozen=True, slots=True)
class PrefillFirst(Batching):
    """As soon as a waiting prompt fits, run a step of whole prompts alone; decode otherwise.

    Batches form anew in every step; prompts before decodes and never cut, as vLLM V0 does by default. Decodes pause
    meanwhile.

    Source: Orca (Yu et al., OSDI 2022); vLLM V0, prompts first.
    """

    whole_prompts: ClassVar[bool] = True

    max_batched_tokens: int = 8192
    max_running_requests: int = 256

    def __post_init__(self) -> None:
        check_counts(self, "max_running_requests", "max_batched_tokens")

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """Prompts alone if the next fits, decodes alone if not."""
        blocks = replica.next_blocks
        room = replica.running_requests < self.max_running_requests
        prefill = blocks is not None and room and blocks <= replica.free_blocks
        return StepLimits(
            self.max_batched_tokens,
            self.max_running_requests,
            self.max_batched_tokens,
            decode=not prefill,
            admit=prefill,
            whole_prompts=True,
        )
