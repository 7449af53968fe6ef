"""How a step's batch is filled."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from policies.horizon import FOREVER
from policies.views import ReplicaView


@dataclass(frozen=True, slots=True)
class StepLimits:
    """What one step may hold.

    ``max_batched_tokens`` bounds all new tokens of the step (prompt chunks, and one per decoding request),
    ``max_running_requests`` the requests that hold KV memory, ``max_chunk_tokens`` the chunk of any one prompt.
    """

    max_batched_tokens: int
    max_running_requests: int
    max_chunk_tokens: int


class Batching(ABC):
    """Sets the limits of the next step; the scheduler fills them, requests already running first."""

    stable_steps: ClassVar[int] = FOREVER
    """Steps for which the limits stand while no request arrives, finishes or is preempted."""

    @abstractmethod
    def limits(self, replica: ReplicaView, now_s: float) -> StepLimits:
        """The limits of the step that is about to start."""
