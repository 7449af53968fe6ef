"""How accelerators reach each other: which kind of link a group of them talks over, and how fast it is."""

from dataclasses import dataclass
from typing import Literal

from simcore.cost.collectives import NETWORK, NVLINK, PCIE, PCIE_HOST
from simcore.hardware import Accelerator

DEVICES_PER_NODE = 8
"""Accelerators of one host, over PCIe where they have no links of their own."""
NETWORK_BYTES_PER_S = 50e9
"""Per accelerator and direction: one adapter of 400 Gbit/s each, as in a DGX H100 (its datasheet, 2022; recalled)."""
PcieAccess = Literal["auto", "peer", "host"]


@dataclass(frozen=True, slots=True)
class Fabric:
    """The links of a cluster of one accelerator type.

    ``pcie_peer_to_peer`` tells whether devices write to each other over PCIe, or through the memory of the host;
    ``network_bytes_per_s`` is the rate between nodes per accelerator and direction.
    """

    accelerator: Accelerator
    pcie_peer_to_peer: bool
    network_bytes_per_s: float = NETWORK_BYTES_PER_S

    @classmethod
    def of(
        cls, accelerator: Accelerator, pcie: PcieAccess = "auto", network_bytes_per_s: float = NETWORK_BYTES_PER_S
    ) -> "Fabric":
        """The links of so many accelerators; ``pcie`` "auto" is what the accelerator's profile says."""
        peers = accelerator.pcie_peer_to_peer if pcie == "auto" else pcie == "peer"
        return cls(accelerator, peers, network_bytes_per_s)

    @property
    def node_devices(self) -> int:
        """Accelerators of one node: those that scale-up links join, at least those of one host."""
        return max(self.accelerator.interconnect_domain, DEVICES_PER_NODE)

    def topology(self, span: int) -> str:
        """What the slowest link is of a group that takes up ``span`` neighbouring accelerators."""
        if span <= self.accelerator.interconnect_domain and self.accelerator.interconnect_bytes_per_s is not None:
            return NVLINK
        if span > self.node_devices:
            return NETWORK
        return PCIE if self.pcie_peer_to_peer else PCIE_HOST

    def between(self, first: int, second: int) -> str:
        """What the link is from one accelerator to another, counted from 0 through all nodes."""
        for devices, topology in (
            (self.accelerator.interconnect_domain, NVLINK),
            (self.node_devices, PCIE if self.pcie_peer_to_peer else PCIE_HOST),
        ):
            if first // devices == second // devices:
                return topology
        return NETWORK

    def bytes_per_s(self, topology: str) -> float:
        """The rate of that link per accelerator and direction, as its datasheet states it."""
        if topology == NVLINK:
            assert self.accelerator.interconnect_bytes_per_s is not None
            return self.accelerator.interconnect_bytes_per_s
        return self.network_bytes_per_s if topology == NETWORK else self.accelerator.pcie_bytes_per_s


def measured_topology(accelerator: Accelerator) -> str:
    """What the collectives of an accelerator's kernel profiles were measured over."""
    return NVLINK if accelerator.interconnect_domain > 1 else PCIE
