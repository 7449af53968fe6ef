"""Along the branches of the tree of cached prefixes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar

from policies.horizon import FOREVER
from policies.ordering import CacheAwareOrdering
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class DepthFirst(CacheAwareOrdering):
    """Serve requests as a depth-first walk meets their cached prefixes, the branch with most waiting requests first.

    Those whose prefix ends at a node come after those beyond it. Where no tree is shown, which takes batching in turns,
    the order is that of arrival.

    Source: SGLang's dfs-weight.
    """

    by_branch: ClassVar[bool] = True
    look_ahead: int = field(default=FOREVER, init=False, repr=False)

    def rank(self, request: RequestView, cached_tokens: int, now_s: float) -> tuple[float, ...]:
        """By arrival."""
        return (request.arrival_s,)

    def place_on(self, branch: Sequence[tuple[int, int]]) -> tuple[float, ...]:
        """Heavy nodes before light ones, and these in their order; what ends here goes last."""
        return (*(part for weight, child in branch for part in (-weight, child)), inf)
