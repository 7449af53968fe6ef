"""In-flight batching of whole prompts."""

from dataclasses import dataclass, field
from typing import ClassVar

from policies.batching import Batching, StepLimits
from policies.bounds import check_counts, check_range
from policies.horizon import FOREVER
from policies.views import ReplicaView


@dataclass(slots=True)
class InFlight(Batching):
    """Decode every running request in every step, beside as many whole prompts as the token budget has room for.

    A prompt is never cut: it waits until the budget that decodes leave holds all of it. One longer than the budget
    waits until nobody runs and has a step for itself, or, with ``reject_longer``, is turned away as it arrives, as
    ``trtllm-serve`` does by default, without chunked context (``_check_arguments`` in ``tensorrt_llm/llmapi/llm.py``).

    Prompts may wait for more of them beside decodes, for ``max_waiting_steps`` steps at the most: until they and the
    decodes fill ``enough_tokens_share`` of the budget. TensorRT-LLM calls these ``batch_wait_timeout_iters`` and
    ``batch_wait_max_tokens_ratio``, and counts prompts for which the step has room; here all that wait count.

    Source: Orca (Yu et al., OSDI 2022), iteration-level scheduling; TensorRT-LLM, in-flight batching.
    """

    whole_prompts: ClassVar[bool] = True

    max_batched_tokens: int = 8192
    max_running_requests: int = 2048
    reject_longer: bool = False
    max_waiting_steps: int = 0
    enough_tokens_share: float = 1.0
    _waited_steps: int = field(default=0, init=False, repr=False)
    _waited_at: int = field(default=-1, init=False, repr=False)

    def __post_init__(self) -> None:
        check_counts(self, "max_running_requests", "max_batched_tokens")
        check_counts(self, "max_waiting_steps", least=0)
        check_range(self, 0.0, 1.0, "enough_tokens_share")

    @property
    def longest_prompt_tokens(self) -> int | None:
        """The token budget, if longer ones are rejected."""
        return self.max_batched_tokens if self.reject_longer else None

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """The same in every step but for whether prompts are let in yet."""
        blocks = replica.next_blocks if self.max_waiting_steps else None
        room = replica.running_requests < self.max_running_requests
        fits = blocks is not None and room and blocks <= replica.free_blocks
        return StepLimits(
            self.max_batched_tokens,
            self.max_running_requests,
            self.max_batched_tokens,
            admit=not (fits and self._waits(replica)),
            whole_prompts=True,
            stable_steps=1 if fits else FOREVER,
        )

    def _waits(self, replica: ReplicaView) -> bool:
        now, tokens = replica.decode_steps, replica.waiting_tokens + replica.decoding_requests
        enough = tokens >= self.enough_tokens_share * self.max_batched_tokens
        waited = self._waited_steps - (now == self._waited_at)  # before this step
        if enough or not replica.decoding_requests or waited >= self.max_waiting_steps:
            self._waited_steps = 0
            return False
        self._waited_steps = waited + 1
        self._waited_at = now
        return True
