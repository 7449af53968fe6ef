"""From the replicas that will be full first to those that have most room for each request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from policies.bounds import MOST, check_range, check_value
from policies.migration import Migration, Move
from policies.views import MigrationView, RequestView


@dataclass(frozen=True, slots=True)
class VirtualUsage(Migration):
    """Move requests from replicas that run out of memory within `give_below_steps` to the freest.

    The freeness of a replica is the decode steps until its memory is full: its free tokens over its running requests.
    What the request at the head of the queue needs counts as used, so that a queue makes room for its first. So does
    the `headroom_tokens` of each level that runs there, which keeps load away from urgent requests. Those with most
    freeness take, if they have more than `take_above_steps`: the freest from the fullest, and so on. Of the requests
    that decode, the least urgent with the least memory goes, if there is room for it.

    Source: Llumnix (Sun et al., OSDI 2024, sections 4.4.2 and 4.4.3); the two thresholds are own values.
    """

    give_below_steps: float = 10.0
    take_above_steps: float = 60.0
    headroom_tokens: Mapping[int, int] = field(default_factory=dict)

    keyed_by: ClassVar[Mapping[str, str]] = {"headroom_tokens": "level"}

    def __post_init__(self) -> None:
        check_range(self, 0, MOST, "give_below_steps", "take_above_steps")
        if self.take_above_steps < self.give_below_steps:
            stated = f"{self.take_above_steps:g}, expected at least give_below_steps, {self.give_below_steps:g}"
            raise ValueError(f"take_above_steps is {stated}")
        for level, tokens in self.headroom_tokens.items():
            check_value(f"headroom_tokens.{level}", tokens, 0, MOST)

    def freeness(self, replica: MigrationView) -> float:
        """Steps until memory is full, less than 0 if it is by what is asked for."""
        free_tokens = (replica.free_blocks - (replica.next_blocks or 0)) * replica.block_tokens
        if self.headroom_tokens:
            levels = {request.priority for request in replica.decoding}
            free_tokens -= sum(self.headroom_tokens.get(level, 0) for level in levels)
        return free_tokens / max(replica.running_requests, 1)

    def moves(self, replicas: Sequence[MigrationView], now_s: float) -> Sequence[Move]:
        """One request for each pair."""
        free = [(self.freeness(replica), place) for place, replica in enumerate(replicas) if not replica.is_moving]
        givers = sorted(entry for entry in free if entry[0] < self.give_below_steps)
        takers = sorted((entry for entry in free if entry[0] > self.take_above_steps), key=lambda e: (-e[0], e[1]))
        found = []
        for (_, source), (_, target) in zip(givers, takers, strict=False):
            request = self._chosen(replicas[source], replicas[target])
            if request is not None:
                found.append(Move(source, target, request))
        return found

    @staticmethod
    def _chosen(source: MigrationView, target: MigrationView) -> RequestView | None:
        room_tokens = target.free_blocks * target.block_tokens
        fitting = (request for request in source.decoding if request.tokens_in_memory < room_tokens)
        return min(fitting, key=lambda each: (-each.priority, each.tokens_in_memory, each.number), default=None)
