"""Which requests the replicas of a pool could ever serve."""

from simcore.core.request import Request
from simcore.scheduling.room import blocks_kept_from
from simcore.scheduling.scheduler import Scheduler

BEYOND_BUDGET = "prompt is longer than the batching policy takes"
TOO_LARGE = "needs more KV blocks than a replica has"
TOO_LARGE_FOR_GROUP = "needs more KV blocks than a data-parallel group has"


class ReplicaLimits:
    """What a request may need of one of some like replicas, by the scheduler of any of them.

    A request stays in its data-parallel group, which has ``group_blocks``; None where there is one.
    """

    __slots__ = ("_group_blocks", "_longest_prompt_tokens", "_scheduler")

    def __init__(self, scheduler: Scheduler, group_blocks: int | None = None) -> None:
        self._scheduler = scheduler
        self._group_blocks = group_blocks
        self._longest_prompt_tokens = scheduler.config.batching.longest_prompt_tokens

    def refusal(self, request: Request, tokens: int) -> str | None:
        """Why a request, which comes to hold so many tokens, could not be served even alone; None if it could."""
        longest = self._longest_prompt_tokens
        if longest is not None and request.prompt_tokens > longest:
            return BEYOND_BUDGET
        scheduler = self._scheduler
        memory = scheduler.memory
        blocks = memory.most_blocks(tokens, request)
        if blocks > memory.total_for(request) - blocks_kept_from(scheduler.state, request.priority):
            return TOO_LARGE
        if self._group_blocks is not None and blocks > self._group_blocks:
            return TOO_LARGE_FOR_GROUP
        return None
