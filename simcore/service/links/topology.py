"""Where replicas stand, and which links lie between two of them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where a replica stands, and how fast its accelerators send and receive together, bytes/s for each direction.

    ``scale_up_bytes_per_s`` is by links of their own within a node (NVLink), or by PCIe without any;
    ``network_bytes_per_s`` is by the NICs of the accelerators. A replica that spans nodes stands on its first.
    """

    node: int
    scale_up_bytes_per_s: float
    network_bytes_per_s: float


class Topology:
    """Replicas on nodes, nodes in racks, racks joined by a fabric that is as fast as their uplinks let it be.

    Links have two directions, each a link of its own. Without ``uplink_bytes_per_s`` nothing but NICs limits what moves
    between nodes.
    """

    def __init__(
        self, places: Sequence[Place], nodes_per_rack: int | None = None, uplink_bytes_per_s: float | None = None
    ) -> None:
        self._places = places
        self._nodes_per_rack = nodes_per_rack
        self.bytes_per_s: dict[str, float] = {}
        for replica, place in enumerate(places):
            self.bytes_per_s |= {
                f"scale-up out {replica}": place.scale_up_bytes_per_s,
                f"scale-up in {replica}": place.scale_up_bytes_per_s,
                f"NIC out {replica}": place.network_bytes_per_s,
                f"NIC in {replica}": place.network_bytes_per_s,
            }
        self._limited = nodes_per_rack is not None and uplink_bytes_per_s is not None
        if self._limited:
            assert uplink_bytes_per_s is not None
            for rack in sorted({self.rack(replica) for replica in range(len(places))}):
                self.bytes_per_s |= {f"uplink {rack}": uplink_bytes_per_s, f"downlink {rack}": uplink_bytes_per_s}

    def links_of(self, replica: int) -> tuple[str, ...]:
        """The links that are a replica's own."""
        return tuple(f"{kind} {way} {replica}" for kind in ("scale-up", "NIC") for way in ("out", "in"))

    def rack(self, replica: int) -> int:
        """The rack that a replica stands in; all in one where racks have no size."""
        return 0 if self._nodes_per_rack is None else self._places[replica].node // self._nodes_per_rack

    def route(self, source: int, target: int) -> tuple[str, ...]:
        """The links from one replica to another."""
        if self._places[source].node == self._places[target].node:
            return (f"scale-up out {source}", f"scale-up in {target}")
        from_rack, to_rack = self.rack(source), self.rack(target)
        between = (f"uplink {from_rack}", f"downlink {to_rack}") if self._limited and from_rack != to_rack else ()
        return (f"NIC out {source}", *between, f"NIC in {target}")
