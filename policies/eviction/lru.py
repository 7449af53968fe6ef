"""Give up what was used longest ago."""

from dataclasses import dataclass
from typing import ClassVar

from policies.eviction import Eviction
from policies.views import CachedBlockView


@dataclass(slots=True)
class LeastRecentlyUsed(Eviction):
    """Blocks go in the order in which they were released, as in vLLM and SGLang."""

    by_release: ClassVar[bool] = True

    def worth(self, block: CachedBlockView) -> float:
        """Equal for all."""
        return 0.0
