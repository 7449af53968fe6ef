"""Give up what was used least often."""

from dataclasses import dataclass

from policies.eviction import Eviction
from policies.views import CachedBlockView


@dataclass(slots=True)
class LeastFrequentlyUsed(Eviction):
    """Blocks that fewest requests used since they were cached go first.

    Source: compared in Mooncake (FAST 2025, section 4).
    """

    def worth(self, block: CachedBlockView) -> float:
        """How many requests used it."""
        return block.uses
