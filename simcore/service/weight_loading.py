"""Weights on their way to the replicas that start."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from simcore.core.clock import NS_PER_S
from simcore.service.clock import BackgroundAlarm, Clock
from simcore.service.links import Network, Transfer

Source = Literal["network", "drive"]
_STORE = "store"


@dataclass(frozen=True, slots=True)
class WeightLinks:
    """What weights of a replica pass, bytes/s: the store or drive that they are read from, its NICs, its PCIe links.

    A store is one for all replicas, behind their NICs. Drives are their own.
    """

    size_bytes: int
    source: Source
    read_bytes_per_s: float
    nic_bytes_per_s: float
    pcie_bytes_per_s: float

    def bytes_per_s(self, replica: int) -> dict[str, float]:
        """The links of a replica, by name, in the order in which weights pass them."""
        own = {f"NIC {replica}": self.nic_bytes_per_s, f"PCIe {replica}": self.pcie_bytes_per_s}
        if self.source == "network":
            return {_STORE: self.read_bytes_per_s, **own}
        return {f"drive {replica}": self.read_bytes_per_s, f"PCIe {replica}": self.pcie_bytes_per_s}

    @property
    def alone_s(self) -> float:
        """Seconds that weights take if nobody else loads."""
        return self.size_bytes / min(self.bytes_per_s(0).values())


class WeightLoading:
    """Moves weights over links that concurrent starts share max-min fairly; those of sleepers come by PCIe alone."""

    def __init__(self, clock: Clock, links: WeightLinks, replicas: range) -> None:
        rates: dict[str, float] = {}
        for replica in replicas:
            rates |= links.bytes_per_s(replica)
        self._links = links
        self._network = Network(clock, rates, alarm=BackgroundAlarm)
        self._moving: dict[int, Transfer] = {}

    def load(self, replica: int, from_host: bool, on_loaded: Callable[[], None]) -> None:
        """Move the weights of a replica, from where they are kept or from the host's memory."""

        def done(_: Transfer) -> None:
            del self._moving[replica]
            on_loaded()

        route = tuple(self._links.bytes_per_s(replica))
        self._moving[replica] = self._network.send(route[-1:] if from_host else route, self._links.size_bytes, done)

    def stop(self, replica: int) -> None:
        """Let the weights of a replica be, if they are on their way."""
        transfer = self._moving.pop(replica, None)
        if transfer is not None:
            self._network.stop(transfer)


def start_s(links: WeightLinks, boot_ns: int, after_ns: int) -> float:
    """Seconds from the decision to start a replica to its first request, if nobody else loads."""
    return links.alone_s + (boot_ns + after_ns) / NS_PER_S
