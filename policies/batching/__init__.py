"""How a step's batch is filled."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from policies.commitment import Commitment
from policies.horizon import FOREVER
from policies.views import ReplicaView, RequestView


@dataclass(frozen=True, slots=True)
class StepLimits:
    """What one step may hold.

    ``max_batched_tokens`` bounds all new tokens of the step (prompt chunks, and one per decoding request),
    ``max_running_requests`` the requests that hold KV memory, ``max_chunk_tokens`` the chunk of any one prompt. Running
    requests decode only with ``decode``, and waiting ones are admitted only with ``admit``. With ``whole_prompts`` a
    prompt is never cut: it waits until the budget has room, and one longer than the budget has a step for itself.
    With neither of the two there may be nothing to run: then the limits are asked for again at ``retry_at_s``, or when
    a request arrives. The limits stand for ``stable_steps`` steps while no request finishes or is preempted; limits
    that depend on how many requests wait, which any arrival changes, must state 1. A request may count as running for
    one step after it has finished; that must make no difference to limits while nobody waits.
    """

    max_batched_tokens: int
    max_running_requests: int
    max_chunk_tokens: int
    decode: bool = True
    admit: bool = True
    whole_prompts: bool = False
    retry_at_s: float | None = None
    stable_steps: int = FOREVER


@dataclass(frozen=True, slots=True)
class Turns:
    """How steps of prompts and steps of decodes take turns.

    A step of prompts goes first wherever one may be let in. It takes ``chunk_tokens`` and cuts the prompt that goes
    beyond; None cuts no prompt. Nobody more is let in once ``input_tokens`` are taken. With ``mixed`` those who decode
    do so in steps of prompts too. ``commitment`` says what of their memory is spoken for. A waiting request takes the
    slot of one that runs whose level is worse by more than ``displaces_beyond``, None for never.
    """

    slots: int
    input_tokens: int
    chunk_tokens: int | None
    commitment: Commitment
    mixed: bool = False
    displaces_beyond: int | None = None


class Batching(ABC):
    """Sets the limits of the next step; the scheduler fills them, requests already running first.

    A policy whose limits may ask for ``whole_prompts`` says so of its class too, as they bear on the KV memory needed.
    """

    paired_hooks: ClassVar[Mapping[str, str]] = {
        "accepts": "filters_admission",
        "finished": "hears_finished",
        "ended": "hears_ended",
    }
    whole_prompts: ClassVar[bool] = False
    filters_admission: ClassVar[bool] = False
    """Whether ``accepts`` is asked before a request is let in."""
    hears_finished: ClassVar[bool] = False
    """Whether ``finished`` is told of complete requests."""
    hears_ended: ClassVar[bool] = False
    """Whether ``ended`` is told of requests that do not run any more."""

    @abstractmethod
    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """The limits of the step that is about to start."""

    @property
    def turns(self) -> Turns | None:
        """How prompts and decodes take turns; None where ``limits`` say of each step what it may hold."""
        return None

    @property
    def longest_prompt_tokens(self) -> int | None:
        """A request with a longer prompt is turned away as it arrives; None turns nobody away."""
        return None

    def accepts(self, request: RequestView, running: int) -> bool:
        """Whether the request that is next may join the ``running`` ones; if not, admission ends."""
        return True

    def finished(self, request: RequestView, ttft_s: float, tpot_s: float | None) -> None:
        """Learn from a request that is complete (``tpot_s`` is None for a single token)."""

    def ended(self, request: RequestView) -> None:
        """Forget a request that is complete, was dropped, or is back in the queue to be computed again."""
