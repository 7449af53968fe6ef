"""The tiers below GPU memory as one store: written through, loaded from, and each handing down what it evicts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from simcore.memory.link import DEMOTION, LOAD, PREFETCH, WRITE, Link
from simcore.memory.tier import Tier


class Timer(Protocol):
    """Tells the time and calls back: virtual time in a simulation."""

    @property
    def now_ns(self) -> int:
        """Nanoseconds since the start of the run."""

    def call_at(self, time_ns: int, action: Callable[[], None]) -> None:
        """Do something at a time that is not past."""


@dataclass(frozen=True, slots=True)
class Route:
    """How blocks of one prefix would come to the GPU.

    ``levels`` says for each of ``keys`` which tier it is taken from, ``reads`` which must be read into CPU memory from
    which tier, and ``parts`` when how many blocks would be in CPU memory, in order of time.
    """

    keys: Sequence[int]
    levels: Sequence[int]
    reads: list[tuple[int, list[int]]]
    parts: list[tuple[int, int]]


class TierChain:
    """Tiers under one replica's GPU memory, fastest first, and the links over which their blocks move.

    Everything passes through CPU memory: ``from_gpu`` and ``to_gpu`` lead there and back, the links of a lower tier on
    from there. A block crosses one link after another. What a tier evicts is handed down to the next one, unless that
    has it already, and what the last one evicts is lost. A block that is loaded stays where it was, and in CPU memory
    too if that is a tier. A transfer that has begun has its data, whatever is evicted meanwhile, be it on the GPU.

    ``hits`` keeps, by request number, how many tokens of it each tier had when it was first admitted.

    With ``prefetches``, what a request that still queues will need is brought up from lower tiers into CPU memory.
    """

    def __init__(
        self,
        tiers: Sequence[Tier],
        to_gpu: Link,
        from_gpu: Link,
        block_bytes: int,
        clock: Timer,
        prefetches: bool = False,
    ) -> None:
        self.tiers = tuple(tiers)
        self._host = self.tiers[0] if self.tiers[0].read is None else None
        self.prefetches = prefetches and self._host is not None and len(self.tiers) > 1
        self._to_gpu = to_gpu
        self._from_gpu = from_gpu
        self._block_bytes = block_bytes
        self._clock = clock
        self.hits: dict[int, tuple[int, ...]] = {}

    def find(self, keys: Iterable[int]) -> list[int]:
        """Which tier has each of the blocks of a prefix, up to the first that none has."""
        now_ns, levels = self._clock.now_ns, []
        for key in keys:
            level = next((level for level, tier in enumerate(self.tiers) if tier.holds(key, now_ns)), None)
            if level is None:
                break
            levels.append(level)
        return levels

    def route(self, keys: Sequence[int], worth_ns: Callable[[int], int] | None = None) -> Route | None:
        """How to load the blocks of a prefix that are here; None if there are none to load.

        So many blocks are loaded only if that takes less than they are ``worth_ns``.
        """
        levels = self.find(keys)
        while levels:
            route = self._route(keys[: len(levels)], levels)
            if worth_ns is None or self._load_ns(route) < worth_ns(len(levels)):
                return route
            while levels and levels[-1] == route.levels[-1]:
                levels = levels[:-1]
        return None

    def load(self, route: Route, done: Callable[[], None]) -> None:
        """Load the blocks of a route that was found at this moment; tells when all of them are on the GPU."""
        for tier in self.tiers:
            tier.use(route.keys)
        self._read(route, LOAD)
        self._forward(route.parts, 0, done)

    def prefetch(self, keys: Sequence[int]) -> None:
        """Bring the blocks of a prefix that are in lower tiers into CPU memory."""
        levels = self.find(keys)
        self._read(self._route(keys[: len(levels)], levels), PREFETCH)

    def write(self, keys: Sequence[int], computed: int) -> None:
        """Write the blocks of a prefix through to the first tier, all after the first ``computed`` of them."""
        first = self.tiers[0]
        first.use(keys)
        new = self._make_room(0, keys[computed:])
        first.use(keys)
        self._move(new, (self._from_gpu, first.write), WRITE, first)

    def check(self) -> None:
        """Raise AssertionError if a tier holds more than it can."""
        for tier in self.tiers:
            tier.check()

    def _route(self, keys: Sequence[int], levels: Sequence[int]) -> Route:
        now_ns, host = self._clock.now_ns, self._host
        reads: list[tuple[int, list[int]]] = []
        parts: dict[int, int] = {}
        for level, places in groupby(sorted(range(len(levels)), key=levels.__getitem__), key=levels.__getitem__):
            wanted = [keys[place] for place in places]
            read = self.tiers[level].read
            if read is None:
                parts[now_ns] = len(wanted)
                continue
            below: list[int] = []
            for key in wanted:
                coming_ns = None if host is None else host.coming_ns(key)
                if coming_ns is None:
                    below.append(key)
                else:
                    parts[coming_ns] = parts.get(coming_ns, 0) + 1
            if below:
                reads.append((level, below))
                end_ns = read.would_end_ns(now_ns, [(now_ns, len(below) * self._block_bytes)])
                parts[end_ns] = parts.get(end_ns, 0) + len(below)
        return Route(keys, levels, reads, sorted(parts.items()))

    def _load_ns(self, route: Route) -> int:
        now_ns = self._clock.now_ns
        parts = [(ready_ns, blocks * self._block_bytes) for ready_ns, blocks in route.parts]
        return self._to_gpu.would_end_ns(now_ns, parts) - now_ns

    def _read(self, route: Route, kind: int) -> None:
        for level, keys in route.reads:
            read = self.tiers[level].read
            assert read is not None
            end_ns = read.send(self._clock.now_ns, len(keys) * self._block_bytes, kind)
            if self._host is not None:
                self._host.arrive(self._make_room(0, keys), end_ns)

    def _forward(self, parts: Sequence[tuple[int, int]], place: int, done: Callable[[], None]) -> None:
        """Send on to the GPU, one after another, what gets into CPU memory at different times."""
        ready_ns, blocks = parts[place]
        if ready_ns > self._clock.now_ns:
            self._clock.call_at(ready_ns, lambda: self._forward(parts, place, done))
            return
        end_ns = self._to_gpu.send(self._clock.now_ns, blocks * self._block_bytes, LOAD)
        if place + 1 < len(parts):
            self._forward(parts, place + 1, done)
        else:
            self._clock.call_at(end_ns, done)

    def _make_room(self, level: int, keys: Sequence[int]) -> list[int]:
        """Give blocks a place in a tier and hand down what it evicts; returns those that got one."""
        new, evicted = self.tiers[level].make_room(keys, self._clock.now_ns)
        if evicted and level + 1 < len(self.tiers):
            upper, lower = self.tiers[level], self.tiers[level + 1]
            lower.use(evicted)
            self._move(self._make_room(level + 1, evicted), (upper.read, lower.write), DEMOTION, lower)
        return new

    def _move(self, keys: Sequence[int], links: Sequence[Link | None], kind: int, target: Tier) -> None:
        """Move blocks over one link after another (None is no link) to the tier in which they have a place."""
        if not keys:
            return
        crossed = [link for link in links if link is not None]
        end_ns = crossed[0].send(self._clock.now_ns, len(keys) * self._block_bytes, kind)
        if len(crossed) == 1:
            target.arrive(keys, end_ns)
        else:
            self._clock.call_at(end_ns, lambda: self._move(keys, crossed[1:], kind, target))
