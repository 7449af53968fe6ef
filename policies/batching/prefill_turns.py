"""Prompts and decodes in turns, as SGLang takes them."""

from dataclasses import dataclass, field

from policies.batching import Batching, StepLimits, Turns
from policies.bounds import check_counts, check_range
from policies.commitment import Commitment
from policies.commitment.new_token_ratio import NewTokenRatio
from policies.views import ReplicaView

_MOST_LEVELS = 1_000_000


@dataclass(slots=True)
class PrefillTurns(Batching):
    """Run a step of prompts whenever one may be let in, and a step of decodes otherwise.

    A step of prompts has ``max_batched_tokens`` tokens if there are so many. The prompt that goes beyond is cut, and
    its rest goes first in the next step; without ``cut_prompts`` it waits. ``max_input_tokens`` may end admission
    earlier. With ``mixed`` those who decode do so in steps of prompts too, if memory has room. A request is let in if
    memory has room for it and for what ``commitment`` sets aside for those that run; then nobody else is considered
    until somebody leaves. Where decodes run short of memory, the preemption policy says who gives way. With
    ``displaces_beyond`` a waiting request takes the slot of one whose level of priority is worse by more than that.

    It needs a prefix cache in a radix tree, or none. ``reserve_whole_prompt`` has no meaning beside it.

    Source: SGLang 0.5.23 (python/sglang/srt/managers/scheduler.py, schedule_policy.py).
    """

    max_batched_tokens: int = 8192
    max_running_requests: int = 256
    cut_prompts: bool = True
    max_input_tokens: int | None = None
    mixed: bool = False
    displaces_beyond: int | None = None
    commitment: Commitment = field(default_factory=NewTokenRatio)

    def __post_init__(self) -> None:
        check_counts(self, "max_batched_tokens", "max_running_requests")
        if self.max_input_tokens is not None:
            check_counts(self, "max_input_tokens")
        if self.displaces_beyond is not None:
            check_range(self, 0, _MOST_LEVELS, "displaces_beyond")

    @property
    def turns(self) -> Turns:
        """The settings of the turns."""
        return Turns(
            self.max_running_requests,
            self.max_input_tokens or self.max_batched_tokens,
            self.max_batched_tokens if self.cut_prompts else None,
            self.commitment,
            self.mixed,
            self.displaces_beyond,
        )

    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """The most that any step holds."""
        return StepLimits(self.max_batched_tokens, self.max_running_requests, self.max_batched_tokens)
