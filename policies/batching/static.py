"""Static batching."""

from dataclasses import dataclass
from typing import ClassVar

from policies.batching import Batching, StepLimits
from policies.bounds import check_counts
from policies.views import ReplicaView


@dataclass(frozen=True, slots=True)
class Static(Batching):
    """Admit a batch only when none runs, and nobody before all of it is complete.

    What inference without a serving engine does; requests that finish early leave their slots empty.

    Source: batching by request, the baseline of Orca (Yu et al., OSDI 2022).
    """

    whole_prompts: ClassVar[bool] = True

    max_running_requests: int = 32
    max_batched_tokens: int = 65536

    def __post_init__(self) -> None:
        check_counts(self, "max_running_requests", "max_batched_tokens")

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """Whole prompts, admitted while nobody runs."""
        return StepLimits(
            self.max_batched_tokens,
            self.max_running_requests,
            self.max_batched_tokens,
            admit=replica.running_requests == 0,
            whole_prompts=True,
        )
