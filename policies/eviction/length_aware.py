"""Give up the far ends of prompts."""

from dataclasses import dataclass

from policies.eviction import Eviction
from policies.views import CachedBlockView


@dataclass(slots=True)
class LengthAware(Eviction):
    """Blocks that fewest requests used go first, among equals those that stand farthest from the start of their prompt.

    Source: compared with LRU and LFU in Mooncake (FAST 2025, section 4).
    """

    def worth(self, block: CachedBlockView) -> float:
        """Its uses, less a fraction below one that grows with the tokens before it."""
        return block.uses + 1.0 / (1.0 + block.tokens_before)
