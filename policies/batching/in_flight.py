"""In-flight batching of whole prompts."""

from dataclasses import dataclass
from typing import ClassVar

from policies.batching import Batching, StepLimits
from policies.bounds import check_counts
from policies.views import ReplicaView


@dataclass(frozen=True, slots=True)
class InFlight(Batching):
    """Decode every running request in every step, beside as many whole prompts as the token budget has room for.

    A prompt is never cut: it waits until the budget that decodes leave holds all of it. One longer than the budget
    waits until nobody runs and has a step for itself, or, with ``reject_longer``, is turned away as it arrives, as
    ``trtllm-serve`` does by default, without chunked context (``_check_arguments`` in ``tensorrt_llm/llmapi/llm.py``).

    Source: Orca (Yu et al., OSDI 2022), iteration-level scheduling; TensorRT-LLM, in-flight batching.
    """

    whole_prompts: ClassVar[bool] = True

    max_batched_tokens: int = 8192
    max_running_requests: int = 2048
    reject_longer: bool = False

    def __post_init__(self) -> None:
        check_counts(self, "max_running_requests", "max_batched_tokens")

    @property
    def longest_prompt_tokens(self) -> int | None:
        """The token budget, if longer ones are rejected."""
        return self.max_batched_tokens if self.reject_longer else None

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """The same in every step."""
        return StepLimits(
            self.max_batched_tokens, self.max_running_requests, self.max_batched_tokens, whole_prompts=True
        )
