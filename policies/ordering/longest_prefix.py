"""Longest cached prefix first."""

from dataclasses import dataclass
from typing import ClassVar

from policies.bounds import check_range
from policies.ordering import CacheAwareOrdering
from policies.views import RequestView

_MOST_LOOKED_UP = 4096


@dataclass(frozen=True, slots=True)
class LongestPrefixFirst(CacheAwareOrdering):
    """Admit the request of whose prompt most tokens are cached.

    With more than ``look_ahead`` waiting requests, 128 there and 4096 at most, the order is that of arrival, as there:
    looking up the prefixes of all in every step would take too long. Where batching takes turns, a request that shares
    an uncached prefix of 32 tokens or more with one before it goes last, so that the next time it is cached.

    Source: SGLang's "lpm" (Zheng et al., NeurIPS 2024, section 3).
    """

    defers_shared: ClassVar[bool] = True
    look_ahead: int = 128

    def __post_init__(self) -> None:
        check_range(self, 1, _MOST_LOOKED_UP, "look_ahead")

    def rank(self, request: RequestView, cached_tokens: int, now_s: float) -> tuple[float, ...]:
        """The most cached tokens first."""
        return (-cached_tokens,)
