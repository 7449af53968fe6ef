"""Which requests the replicas of a pool could ever serve."""

from typing import Literal

from simcore.core.request import Request
from simcore.scheduling.room import blocks_kept_from
from simcore.scheduling.scheduler import Scheduler

Role = Literal["mixed", "prefill", "decode"]
"""What replicas do: all of a request, its prompt, or its output."""

BEYOND_CONTEXT = "longer than the context of the replica's model"
BEYOND_BUDGET = "prompt is longer than the batching policy takes"
TOO_LARGE = "needs more KV blocks than a replica has"
TOO_LARGE_FOR_GROUP = "needs more KV blocks than a data-parallel group has"


class ReplicaLimits:
    """What a request may need of one of some like replicas, by the scheduler of any of them.

    A request stays in its data-parallel group, which has ``group_blocks``; None where there is one. Where replicas only
    prefill, outputs take nothing; where they only decode, prompts may be longer than a step.
    """

    __slots__ = ("_context_tokens", "_group_blocks", "_longest_prompt_tokens", "_scheduler", "prefills_only")

    def __init__(
        self,
        scheduler: Scheduler,
        group_blocks: int | None = None,
        role: Role = "mixed",
        context_tokens: int | None = None,
    ) -> None:
        self._context_tokens = context_tokens
        self._scheduler = scheduler
        self._group_blocks = group_blocks
        self._longest_prompt_tokens = None if role == "decode" else scheduler.config.batching.longest_prompt_tokens
        self.prefills_only = role == "prefill"

    def refusal(self, request: Request, output_tokens: int) -> str | None:
        """Why a request that would generate so much could not be served even alone; None if it could."""
        if self._context_tokens is not None and request.prompt_tokens + output_tokens > self._context_tokens:
            return BEYOND_CONTEXT
        longest = self._longest_prompt_tokens
        if longest is not None and request.prompt_tokens > longest:
            return BEYOND_BUDGET
        scheduler = self._scheduler
        memory = scheduler.memory
        tokens = request.prompt_tokens + (0 if self.prefills_only else output_tokens - 1)
        blocks = memory.most_blocks(tokens, request)
        if blocks > memory.total_for(request) - blocks_kept_from(scheduler.state, request.priority):
            return TOO_LARGE
        if self._group_blocks is not None and blocks > self._group_blocks:
            return TOO_LARGE_FOR_GROUP
        return None
