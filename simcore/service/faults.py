"""All that goes wrong in a service."""

from collections.abc import Sequence
from dataclasses import dataclass

from simcore.service.crashes import Crashes
from simcore.service.fault_record import FaultRecord
from simcore.service.partitions import Partitions


@dataclass(frozen=True, slots=True)
class Faults:
    """What lets replicas crash or be out of reach.

    ``others`` strike without anybody else having to know: slow accelerators and links, lost transfers.
    """

    crashes: Crashes
    partitions: Partitions
    others: Sequence[FaultRecord] = ()

    @property
    def records(self) -> list[FaultRecord]:
        """What each fault did, in order of time."""
        found = [*self.crashes.records, *self.partitions.records, *self.others]
        return sorted(found, key=lambda record: record.at_ns)
