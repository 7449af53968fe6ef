"""The order of those who wait, kept in place from one look to the next."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal

from simcore.core.content import BlockKeys
from simcore.memory.page_memory import PageMemory
from simcore.memory.page_tree import Node, PageTree
from simcore.scheduling.turns.seat import Seat

Order = Literal["fcfs", "lof", "lpm", "dfs-weight"]

MOST_LOOKED_UP = 128
"""With more waiting requests, the longest prefix is not looked for."""
_REFRESH_EVERY = 32
_SHORT_PREFIX_TOKENS = 32


@dataclass(slots=True)
class TurnQueue:
    """Waiting requests; ``token_keys`` says what their tokens are, one by one, to compare those of a batch.

    ``lpm`` puts the longest cached prefix first, but who shares an uncached one of 32 tokens or more with somebody
    before it goes last, so that the next time it is cached. ``dfs-weight`` goes through the tree depth first, ``lof``
    puts the longest output first; with ``by_priority`` levels go before ``fcfs`` and ``lof``. Where the order does not
    look at the tree, every 32nd time the prefixes of those in front are looked up to keep them from being evicted.
    """

    order: Order
    memory: PageMemory
    by_priority: bool
    token_keys: Callable[[Seat], BlockKeys]
    seats: list[Seat] = field(default_factory=list)
    _queued: int = 0
    _refreshes: int = 0

    def __post_init__(self) -> None:
        if not self.memory.shares and self.order in ("lpm", "dfs-weight"):
            self.order = "fcfs"

    def push(self, seat: Seat) -> None:
        """Let a request wait behind all others."""
        self._queued += 1
        seat.queued_at = self._queued
        self.seats.append(seat)

    def prioritise(self) -> None:
        """Sort."""
        if self.order == "lpm" and len(self.seats) > MOST_LOOKED_UP:
            self._refresh()
            return
        _SORTS[self.order](self)
        if self.order in ("fcfs", "lof"):
            self._refresh()

    def _sort_by_arrival(self) -> None:
        if self.by_priority:
            self.seats.sort(key=lambda seat: (seat.priority, seat.queued_at))

    def _sort_by_longest_output(self) -> None:
        self.seats.sort(key=lambda seat: (seat.priority if self.by_priority else 0, -seat.max_output_tokens))

    def _sort_by_longest_prefix(self) -> None:
        last = self._look_up()
        self.seats.sort(key=lambda seat: inf if seat.number in last else -seat.matched_tokens)

    def _sort_depth_first(self) -> None:
        self._look_up()
        nodes: list[Node] = [seat.holding.node or self.memory.tree.root for seat in self.seats]
        self.seats = [self.seats[place] for place in self.memory.tree.heaviest_first(nodes)]

    def _look_up(self) -> set[int]:
        """Look all prefixes up; returns who shares one with somebody before it that is not cached."""
        last: set[int] = set()
        batch = PageTree(1)
        for seat in self.seats:
            tokens = seat.text_tokens
            seat.prefix_tokens = self.memory.look_up(seat.holding, tokens)
            seat.matched_tokens = min(seat.prefix_tokens, tokens - 1)
            if seat.prefix_tokens > _SHORT_PREFIX_TOKENS:
                continue
            keys = self.token_keys(seat)
            if batch.match(keys.at, tokens)[1] >= _SHORT_PREFIX_TOKENS:
                last.add(seat.number)
            else:
                batch.insert([keys.at(token) for token in range(tokens)])
        return last

    def _refresh(self) -> None:
        if not self.seats or not self.memory.shares:
            return
        if self._refreshes % _REFRESH_EVERY == 0:
            for seat in reversed(self.seats[:MOST_LOOKED_UP]):
                node = seat.holding.node
                self.memory.look_up(seat.holding, seat.text_tokens)
                seat.holding.node = node
        self._refreshes += 1


_SORTS: Mapping[Order, Callable[[TurnQueue], None]] = {
    "fcfs": TurnQueue._sort_by_arrival,
    "lof": TurnQueue._sort_by_longest_output,
    "lpm": TurnQueue._sort_by_longest_prefix,
    "dfs-weight": TurnQueue._sort_depth_first,
}
