"""Transfers over shared links, on the clock of a service."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from simpy import Event

from simcore.core.clock import NS_PER_S
from simcore.service.clock import ARRIVAL, Alarm, Clock
from simcore.service.links.sharing import max_min_rates


@dataclass(slots=True, eq=False)
class Transfer:
    """Bytes on their way over some links.

    ``left_bytes`` are still to go since the rates last changed; ``done_ns`` is when the last arrives at these rates.
    ``end_ns`` is when it did, None before.
    """

    number: int
    route: tuple[str, ...]
    size_bytes: int
    start_ns: int
    on_done: Callable[["Transfer"], None]
    left_bytes: float
    bytes_per_s: float = 0.0
    done_ns: int = 0
    end_ns: int | None = None


class Network:
    """Links by name, and the transfers that share them max-min fairly.

    Rates change whenever a transfer starts or ends. A transfer waits for ``latency_ns`` before its first byte moves.
    """

    def __init__(
        self, clock: Clock, bytes_per_s: Mapping[str, float], latency_ns: int = 0, alarm: type[Alarm] = Alarm
    ) -> None:
        self.bytes_per_s = dict(bytes_per_s)
        self.finished: list[Transfer] = []
        self._clock = clock
        self._latency_ns = latency_ns
        self._alarm = alarm
        self._moving: list[Transfer] = []
        self._since_ns = 0
        self._next: Alarm | None = None
        self._count = 0

    def send(self, route: Sequence[str], size_bytes: int, on_done: Callable[[Transfer], None]) -> Transfer:
        """Start to move so many bytes; ``on_done`` is told when the last has arrived, unless it is stopped before."""
        transfer = Transfer(self._count, tuple(route), size_bytes, self._clock.now_ns, on_done, float(size_bytes))
        self._count += 1
        if self._latency_ns:
            self._alarm(self._clock, self._latency_ns, ARRIVAL).callbacks.append(lambda _: self._move(transfer))
        else:
            self._move(transfer)
        return transfer

    def stop(self, transfer: Transfer) -> None:
        """Give up a transfer, whose links others then share."""
        transfer.end_ns = self._clock.now_ns
        if transfer in self._moving:
            self._settle()
            self._moving.remove(transfer)
            self._share()

    def set_rates(self, bytes_per_s: Mapping[str, float]) -> None:
        """Let links be as fast from now on as stated here."""
        self._settle()
        self.bytes_per_s |= bytes_per_s
        self._share()

    def _move(self, transfer: Transfer) -> None:
        if transfer.end_ns is None:
            self._settle()
            self._moving.append(transfer)
            self._share()

    def _settle(self) -> None:
        """Note what has moved at the rates so far."""
        now_ns = self._clock.now_ns
        passed_s = (now_ns - self._since_ns) / NS_PER_S
        for transfer in self._moving:
            transfer.left_bytes = max(transfer.left_bytes - transfer.bytes_per_s * passed_s, 0.0)
        self._since_ns = now_ns

    def _share(self) -> None:
        """Find the rates anew, and wait for the first transfer to end by them."""
        now_ns = self._clock.now_ns
        rates = max_min_rates([transfer.route for transfer in self._moving], self.bytes_per_s)
        for transfer, rate in zip(self._moving, rates, strict=True):
            if rate != transfer.bytes_per_s or not transfer.done_ns:
                transfer.bytes_per_s = rate
                transfer.done_ns = now_ns + ceil(transfer.left_bytes / rate * NS_PER_S)
        self._next = None
        if self._moving:
            first_ns = min(transfer.done_ns for transfer in self._moving)
            self._next = self._alarm(self._clock, max(first_ns - now_ns, 0), ARRIVAL)
            self._next.callbacks.append(self._arrived)

    def _arrived(self, alarm: Event) -> None:
        if alarm is not self._next:  # rates have changed since
            return
        now_ns = self._clock.now_ns
        self._settle()
        done = [transfer for transfer in self._moving if transfer.done_ns <= now_ns]
        self._moving = [transfer for transfer in self._moving if transfer.done_ns > now_ns]
        self._share()
        for transfer in done:
            transfer.end_ns = now_ns
            self.finished.append(transfer)
            transfer.on_done(transfer)
