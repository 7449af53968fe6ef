"""The replica that is likely to have the prompt's prefix cached, unless it has too much to do."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

from policies.bounds import MOST_WEIGHT, check_counts, check_value
from policies.routing import LoadAware
from policies.routing.loads import Loads
from policies.views import RoutedRequestView, RouterView

_MOST_HOLDERS = 8
"""Replicas remembered for one prefix, those that were sent it last."""


@dataclass(slots=True)
class PrefixAffinity(LoadAware):
    """Send a request to a replica that was sent the longest beginning of its prompt before.

    Of several the one with the fewest requests takes it. A replica may have `load_cap` times the mean number of open
    requests, rounded up, and `spare_requests` more: if all that know a prefix are full, those that know a shorter one
    are asked, and at last the replica with the fewest requests takes it. Prefixes are compared by blocks of
    `block_tokens`; the `most_blocks` that were new last are remembered. What replicas have given up since is not known
    here, nor what they generated.

    Source: SGLang's cache-aware router, with bounded loads (Mirrokni, Thorup and Zadimoghaddam, SODA 2018).
    """

    load_cap: float = 1.25
    spare_requests: int = 4
    block_tokens: int = 64
    most_blocks: int = 500_000
    _holders: dict[int, tuple[int, ...]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_value("load_cap", self.load_cap, 1.0, MOST_WEIGHT)
        check_counts(self, "spare_requests", least=0)
        check_counts(self, "block_tokens", "most_blocks")

    def choose(self, request: RoutedRequestView, replicas: Sequence[RouterView]) -> int:
        """The one with the longest prefix, within the cap."""
        loads, keys = self.loads(replicas), request.prefix_keys(self.block_tokens)
        chosen, known = self._choice(loads, keys)
        self._remember(chosen, keys[known:])
        return chosen

    def _choice(self, loads: Loads, keys: Sequence[int]) -> tuple[int, int]:
        """The replica, and how many blocks of the prompt it was sent before."""
        cap = ceil(self.load_cap * (loads.total + 1) / max(loads.open_replicas, 1)) + self.spare_requests
        asked: tuple[int, ...] = ()
        for place in range(len(keys) - 1, -1, -1):
            holders = self._holders.get(keys[place], ())
            if holders == asked:
                continue
            asked = holders
            open_to = [each for each in holders if loads.of[each] < cap and loads.is_open(each)]
            if open_to:
                return min(open_to, key=loads.key), place + 1
        return loads.least, 0

    def _remember(self, replica: int, keys: Sequence[int]) -> None:
        holders = self._holders
        for key in keys:
            others = tuple(each for each in holders.pop(key, ()) if each != replica)
            holders[key] = (*others[1 - _MOST_HOLDERS :], replica)
        while len(holders) > self.most_blocks:
            del holders[next(iter(holders))]
