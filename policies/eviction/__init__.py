"""Which cached block is given up when KV memory is needed."""

from abc import ABC, abstractmethod
from typing import ClassVar

from policies.views import CachedBlockView


class Eviction(ABC):
    """Ranks cached blocks that nobody holds; a fresh object serves each replica, so it may keep state.

    The block of least worth goes first, among equals the one released first: of one request's blocks the last. A block
    without which others could not be found any more waits until those are gone. In a radix tree, a leaf is ranked as
    one large block, and among equals the one used longest ago goes first.
    """

    by_release: ClassVar[bool] = False
    """Whether the order of release alone decides, so that no block need be ranked."""

    @abstractmethod
    def worth(self, block: CachedBlockView) -> float:
        """What it is worth to keep a block that has just been released; not asked again until the next release."""

    def evicted(self, worth: float) -> None:
        """A block of this worth has been given up."""
        return
