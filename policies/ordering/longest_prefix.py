"""Longest cached prefix first."""

from dataclasses import dataclass

from policies.ordering import CacheAwareOrdering
from policies.views import RequestView


@dataclass(frozen=True, slots=True)
class LongestPrefixFirst(CacheAwareOrdering):
    """Admit the request of whose prompt most tokens are cached.

    With more than ``look_ahead`` waiting requests the order is that of arrival, as there, since looking up the prefixes
    of all would take too long.

    Source: SGLang's "lpm" (Zheng et al., NeurIPS 2024, section 3).
    """

    look_ahead: int = 128

    def __post_init__(self) -> None:
        if self.look_ahead < 1:
            raise ValueError(f"look_ahead is {self.look_ahead}, expected at least 1")

    def rank(self, request: RequestView, cached_tokens: int, now_s: float) -> tuple[float, ...]:
        """The most cached tokens first, then the earliest arrival."""
        return -cached_tokens, request.arrival_s
