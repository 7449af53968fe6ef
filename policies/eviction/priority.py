"""Give up what patient requests used."""

from dataclasses import dataclass

from policies.eviction import Eviction
from policies.views import CachedBlockView


@dataclass(slots=True)
class LeastUrgentFirst(Eviction):
    """Blocks that only patient requests used go first.

    Source: TensorRT-LLM, whose retention priorities let a client do so.
    """

    def worth(self, block: CachedBlockView) -> float:
        """The more urgent its most urgent user, the more."""
        return -block.priority
