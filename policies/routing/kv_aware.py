"""The replica with the least to do for a request, by an index of which replica has which blocks cached."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from policies.bounds import MOST_WEIGHT, check_value
from policies.routing import LoadAware
from policies.views import RoutedRequestView, RouterView

_LONGEST_DELAY_S = 1e6


@dataclass(slots=True)
class KvAware(LoadAware):
    """Send a request where what it has to compute, and what is there already, is least.

    The cost of a replica is `overlap_weight` times the prompt tokens that it has not cached, and the prompt tokens of
    all its open requests. What is cached where is known from events of the replicas: a block is stored, or removed.
    They come `delay_s` late, so the index is as old as that. Among equals the one that got a request longest ago is
    next. The memory of replicas must have a prefix cache with index `hash`.

    Source: the KV router of NVIDIA Dynamo and its cost function; block events as in vLLM.
    """

    overlap_weight: float = 1.0
    delay_s: float = 0.01
    _holders: dict[int, int] = field(default_factory=dict, init=False, repr=False)

    follows_blocks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_value("overlap_weight", self.overlap_weight, 0, MOST_WEIGHT)
        check_value("delay_s", self.delay_s, 0, _LONGEST_DELAY_S)

    def load(self, request: RoutedRequestView) -> int:
        """Its prompt."""
        return request.prompt_tokens

    def stored(self, replica: int, key: int) -> None:
        """Enter a replica among the holders of a block, which are the bits of a number."""
        self._holders[key] = self._holders.get(key, 0) | 1 << replica

    def removed(self, replica: int, key: int) -> None:
        """Strike a replica from the holders of a block."""
        left = self._holders[key] & ~(1 << replica)
        if left:
            self._holders[key] = left
        else:
            del self._holders[key]

    def cached_blocks(self, keys: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Each replica that has the first block of a prompt by the index, and how many of the first it has."""
        holders = self._holders.get(keys[0], 0) if keys else 0
        place = 0
        while holders:
            place += 1
            still = holders & self._holders.get(keys[place], 0) if place < len(keys) else 0
            gone = holders & ~still
            while gone:
                lowest = gone & -gone
                yield lowest.bit_length() - 1, place
                gone ^= lowest
            holders = still

    def choose(self, request: RoutedRequestView, replicas: Sequence[RouterView]) -> int:
        """The one of least cost among those that have some of the prompt, and the one with least to do."""
        loads, keys = self.loads(replicas), replicas[0].prefix_keys(request)
        weight = self.overlap_weight * request.prompt_tokens
        costs = {loads.least: weight}
        cached = ((replica, blocks) for replica, blocks in self.cached_blocks(keys) if loads.is_open(replica))
        costs |= {replica: weight * (1 - blocks / len(keys)) for replica, blocks in cached}
        return min(costs, key=lambda replica: (costs[replica] + loads.of[replica], loads.key(replica)))
