"""Give up what was used longest ago."""

from dataclasses import dataclass
from typing import ClassVar

from policies.eviction import Eviction
from policies.views import CachedBlockView


@dataclass(slots=True)
class LeastRecentlyUsed(Eviction):
    """Blocks go in the order of their last use: their release, as in vLLM; in a radix tree, when a request found or
    entered them, as in SGLang.

    Source: vLLM (the queue of free blocks) and SGLang (leaves of the radix tree).
    """

    by_release: ClassVar[bool] = True

    def worth(self, block: CachedBlockView) -> float:
        """Equal for all."""
        return 0.0
