"""Give up what is cheap to compute again."""

from dataclasses import dataclass, field

from policies.eviction import Eviction
from policies.views import CachedBlockView


@dataclass(slots=True)
class CostAware(Eviction):
    """Blocks of least uses x cost to compute again per byte go first, with an age that forgets what is no longer used.

    The age rises to the worth of whatever is given up. A block costs the more the more tokens stand before it, since
    its tokens attend to all of them.

    Source: GreedyDual-Size with frequency (Cherkasova, HPL-98-69R1, 1998).
    """

    _age: float = field(default=0.0, init=False, repr=False)

    def worth(self, block: CachedBlockView) -> float:
        """Age, plus uses times floating point operations per byte."""
        return self._age + block.uses * block.recompute_flops / block.size_bytes

    def evicted(self, worth: float) -> None:
        """Let the age rise."""
        self._age = max(self._age, worth)
