"""The order of those who wait, kept in place from one look to the next."""

from dataclasses import dataclass, field

from policies.ordering import CacheAwareOrdering, Ordering
from simcore.core.request import Request
from simcore.memory.leaf_order import LeafOrder
from simcore.memory.radix_counter import KVRadixCounter
from simcore.memory.radix_node import Node
from simcore.memory.radix_tree import RadixTree
from simcore.scheduling.turns.seat import Seat

_MOST_REFRESHED = 128
_REFRESH_EVERY = 32
_SHORT_PREFIX_TOKENS = 32


@dataclass(slots=True)
class TurnQueue:
    """Waiting requests, sorted whenever a step of prompts is planned; equal ones stay as they stood.

    Orderings that look at the cache look all prefixes up. Others have, every 32nd time, those of the first 128 looked
    up, last to first, to keep them from being given up. Where nothing is cached the order of the former is that in
    which requests were queued.
    """

    ordering: Ordering
    memory: KVRadixCounter
    seats: list[Seat] = field(default_factory=list)
    size: int = 0
    tokens: int = 0
    by_number: dict[int, Seat] = field(default_factory=dict)
    _queued: int = 0
    _refreshes: int = 0

    def push(self, request: Request, now_s: float) -> None:
        """Let a request wait behind all others, whether it is new or had to give way."""
        seat = self.by_number.get(request.number)
        if seat is None:
            memory = self.memory
            room = memory.total_blocks - memory.blocks_for(request.prompt_tokens) - 1
            most_tokens = room * memory.block_size_tokens - 1
            seat = Seat(request, min(request.max_output_tokens, most_tokens))
            self.by_number[request.number] = seat
        self._queued += 1
        seat.queued_at = self._queued
        if not isinstance(self.ordering, CacheAwareOrdering):
            seat.key = self.ordering.key(seat, now_s)
        self.seats.append(seat)
        self.size += 1
        self.tokens += request.tokens_to_compute

    def first(self, now_s: float) -> Request:
        """Who stands in front."""
        return self.seats[0].request

    @property
    def first_key(self) -> tuple[float, ...]:
        """The key of who stands in front."""
        return self.seats[0].key

    def pop(self) -> Request:
        """Take out who stands in front."""
        request = self.seats[0].request
        self.remove(request)
        return request

    def remove(self, request: Request) -> None:
        """Take out a request, wherever it stands."""
        self.take_out([self.by_number[request.number]])

    def take_out(self, seats: list[Seat]) -> None:
        """Take out several."""
        gone = set(map(id, seats))
        self.seats = [seat for seat in self.seats if id(seat) not in gone]
        self.size -= len(seats)
        self.tokens -= sum(seat.request.tokens_to_compute for seat in seats)

    def next_promotion_s(self) -> float | None:
        """Nobody is promoted."""
        return None

    def prioritise(self, now_s: float) -> None:
        """Sort."""
        ordering = self.ordering
        if not isinstance(ordering, CacheAwareOrdering):
            if ordering.changes_with_time:
                for seat in self.seats:
                    seat.key = ordering.key(seat, now_s)
            self.seats.sort(key=lambda seat: seat.key)
            self._refresh()
        elif self.memory.shares:
            if len(self.seats) > ordering.look_ahead:
                self._refresh()
            else:
                self._sort_by_cache(ordering, now_s)

    def _sort_by_cache(self, ordering: CacheAwareOrdering, now_s: float) -> None:
        last = self._look_up(ordering.defers_shared)
        if ordering.by_branch:
            place_on = _branches([self.memory.found(seat.request) for seat in self.seats], self.memory.tree.root)
            for seat in self.seats:
                seat.key = ordering.place_on(place_on[id(self.memory.found(seat.request))])
        else:
            for seat in self.seats:
                matched_tokens = min(seat.prefix_tokens, seat.text_tokens - 1)
                later = seat.number in last
                seat.key = (later, *(() if later else ordering.rank(seat, matched_tokens, now_s)))
        self.seats.sort(key=lambda seat: seat.key)

    def _look_up(self, compares: bool) -> set[int]:
        """Look all prefixes up; returns who shares one with somebody before it that is not cached."""
        last: set[int] = set()
        batch = RadixTree(LeafOrder())
        for seat in self.seats:
            tokens = seat.text_tokens
            seat.prefix_tokens = self.memory.look_up(seat.request, tokens)
            if seat.prefix_tokens > _SHORT_PREFIX_TOKENS or not compares:
                continue
            own = self.memory.token_keys(seat.request)
            if batch.match(own.at, tokens)[1] >= _SHORT_PREFIX_TOKENS:
                last.add(seat.number)
            else:
                batch.insert(batch.root, list(own.between(0, tokens)), range(tokens))
        return last

    def _refresh(self) -> None:
        if not self.seats or not self.memory.shares:
            return
        if self._refreshes % _REFRESH_EVERY == 0:
            for seat in reversed(self.seats[:_MOST_REFRESHED]):
                self.memory.refresh(seat.request, seat.text_tokens)
        self._refreshes += 1


def _branches(nodes: list[Node], root: Node) -> dict[int, list[tuple[int, int]]]:
    """By node the branch that it ends: how many of ``nodes`` are at or below each, and its place among the children."""
    weight: dict[int, int] = {}
    for node in nodes:
        while node is not root:
            weight[node.number] = weight.get(node.number, 0) + 1
            node = node.parent
    branches: dict[int, list[tuple[int, int]]] = {}
    places: dict[int, dict[int, int]] = {}
    for node in nodes:
        if id(node) in branches:
            continue
        branch, end = [], node
        while node is not root:
            above = node.parent
            if id(above) not in places:
                places[id(above)] = {id(child): place for place, child in enumerate(above.children.values())}
            branch.append((weight[node.number], places[id(above)][id(node)]))
            node = above
        branches[id(end)] = branch[::-1]
    return branches
