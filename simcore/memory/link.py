"""A link over which KV memory moves, one transfer after another."""

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from simcore.core.clock import NS_PER_S

KINDS = ("load", "prefetch", "write", "demotion", "swap out", "swap in")
"""What a transfer may be for."""
LOAD, PREFETCH, WRITE, DEMOTION, SWAP_OUT, SWAP_IN = range(len(KINDS))


class Transfer(NamedTuple):
    """What moved over a link: a kind of ``KINDS``, from when until when it occupied the link, and bytes."""

    kind: int
    start_ns: int
    end_ns: int
    size_bytes: int


class Link:
    """One direction of a link, first come first served.

    A transfer occupies the link for its size over the bandwidth, from when it is sent or the one before it is through;
    its last byte is there ``latency_ns`` later, during which the next may begin. As nothing overtakes and sizes are
    known, the end is known when a transfer is sent: one number, the time at which the link is free again, does exactly
    what a SimPy resource of capacity 1 would do that is asked in the same order. Times are sent in order.
    """

    __slots__ = ("_bytes_per_s", "_free_ns", "_latency_ns", "_transfers", "name")

    def __init__(self, name: str, bytes_per_s: float, latency_ns: int = 0) -> None:
        self.name = name
        self._bytes_per_s = bytes_per_s
        self._latency_ns = latency_ns
        self._free_ns = 0
        self._transfers = array("q")

    def occupied_ns(self, size_bytes: int) -> int:
        """How long a transfer occupies the link, at least a nanosecond."""
        return max(1, round(size_bytes * NS_PER_S / self._bytes_per_s))

    def send(self, now_ns: int, size_bytes: int, kind: int, not_before_ns: int = 0) -> int:
        """Send so many bytes, which are there to be sent from ``not_before_ns``; returns when the last has arrived."""
        start_ns = max(now_ns, not_before_ns, self._free_ns)
        self._free_ns = start_ns + self.occupied_ns(size_bytes)
        self._transfers.extend((kind, start_ns, self._free_ns, size_bytes))
        return self._free_ns + self._latency_ns

    def would_end_ns(self, now_ns: int, parts: Sequence[tuple[int, int]]) -> int:
        """When the last of several transfers (when it could be sent, bytes) would have arrived if nothing else came."""
        free_ns = max(now_ns, self._free_ns)
        for ready_ns, size_bytes in parts:
            free_ns = max(free_ns, ready_ns) + self.occupied_ns(size_bytes)
        return free_ns + self._latency_ns

    @property
    def transfers(self) -> Iterator[Transfer]:
        """Everything that was sent, in order."""
        rows = self._transfers
        for place in range(0, len(rows), 4):
            yield Transfer(*rows[place : place + 4])
