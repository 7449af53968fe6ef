"""Collectives that were not measured on the accelerator at hand: an alpha-beta model with constants fitted elsewhere.

A ring of n ranks passes on its parts in equal steps (Thakur, Rabenseifner & Gropp, IJHPCA 2005; NCCL's ring algorithm):
``launch_s + steps * step_s + share * bytes / (efficiency * link)``. ``calibrate/ship_collectives.py`` fits the
constants for each kind of link and operation.
"""

from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Annotated

import pydantic
from pydantic import ConfigDict, Field

from simcore.core.errors import UnknownNameError
from simcore.core.yaml_text import read_yaml
from simcore.cost.calibrated import Source
from simcore.cost.calibrated.errors import LEVELS, ErrorQuantiles

CONSTANTS_FILE = "collectives/alpha_beta.yaml"
"""Within ``hardware_profiles``."""
NVLINK, PCIE, PCIE_HOST, NETWORK = "nvlink", "pcie", "pcie-host", "network"
TOPOLOGIES = (NVLINK, PCIE, PCIE_HOST, NETWORK)
"""Scale-up links through switches (NVLink, Infinity Fabric); PCIe from device to device; PCIe through the memory of the
host, where devices may not write to each other; and the network between nodes."""
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")


def ring_steps(operation: str, ranks: int) -> int:
    """How often a message is passed on: twice around the ring for an all-reduce, once for its two halves.

    The messages of an all-to-all and of a send leave at once, as there is no order among them. Raises
    ``UnknownNameError`` for an unknown operation.
    """
    if operation not in OPERATIONS:
        raise UnknownNameError("operation", operation, OPERATIONS)
    if operation in ("all_to_all", "send_recv"):
        return 1
    return (2 if operation == "all_reduce" else 1) * (ranks - 1)


def link_share(operation: str, ranks: int) -> float:
    """How much of the buffer crosses the link of each rank, per direction.

    Buffers are whole: what every rank has of an all-reduce, all parts together of a gather or scatter, what one rank
    has for all others and itself in an all-to-all. Raises ``UnknownNameError`` for an unknown operation.
    """
    if operation not in OPERATIONS:
        raise UnknownNameError("operation", operation, OPERATIONS)
    if operation == "send_recv":
        return 1.0
    return (2 if operation == "all_reduce" else 1) * (ranks - 1) / ranks


@dataclass(frozen=True, slots=True)
class AlphaBeta:
    """The constants of one operation over one kind of link; ``errors`` are those of the fit, ``source`` its samples.

    ``ranks`` and ``bytes`` are the least and the greatest that were measured; ``errors`` is None where constants were
    derived from those of another operation.
    """

    topology: str
    operation: str
    launch_s: float
    step_s: float
    efficiency: float
    ranks: tuple[int, int]
    bytes: tuple[int, int]
    errors: ErrorQuantiles | None
    source: str

    def seconds(self, moved_bytes: float, ranks: int, link_bytes_per_s: float) -> float:
        """The operation over a buffer of so many bytes among ``ranks`` on links of that rate per direction."""
        crossing_s = link_share(self.operation, ranks) * moved_bytes / (self.efficiency * link_bytes_per_s)
        return self.launch_s + ring_steps(self.operation, ranks) * self.step_s + crossing_s


@dataclass(frozen=True, slots=True)
class AlphaBetaPrice:
    """A collective among ``ranks`` by fitted constants; never inside, since this very device was not measured."""

    constants: AlphaBeta
    ranks: int
    link_bytes_per_s: float
    source: Source = Source.ALPHA_BETA

    def seconds(self, x: int) -> float:
        """One collective of ``x`` bytes; nothing for none."""
        return self.constants.seconds(x, self.ranks, self.link_bytes_per_s) if x else 0.0

    def inside(self, x: int) -> bool:
        """Not measured on this accelerator."""
        return False

    def errors_at(self, x: int) -> ErrorQuantiles | None:
        """Those of the fit, the same everywhere."""
        return self.constants.errors


class _Strict(pydantic.BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


Bounds = Annotated[list[int], Field(min_length=2, max_length=2)]


class _Residuals(_Strict):
    points: Annotated[int, Field(ge=1)]
    median: float
    p90: float
    bias: float
    quantiles: Annotated[list[float], Field(min_length=len(LEVELS), max_length=len(LEVELS))]


class _Entry(_Strict):
    topology: str
    operation: str
    launch_s: Annotated[float, Field(ge=0)]
    step_s: Annotated[float, Field(ge=0)]
    efficiency: Annotated[float, Field(gt=0)]
    ranks: Bounds
    bytes: Bounds
    residuals: _Residuals | None = None
    source: str

    def constants(self) -> AlphaBeta:
        found = self.residuals
        errors = None
        if found is not None:
            errors = ErrorQuantiles(found.points, found.median, found.p90, found.bias, tuple(found.quantiles))
        (least, most), (smallest, largest) = self.ranks, self.bytes
        return AlphaBeta(
            self.topology,
            self.operation,
            self.launch_s,
            self.step_s,
            self.efficiency,
            (least, most),
            (smallest, largest),
            errors,
            self.source,
        )


class _Document(_Strict):
    licences: str
    entries: list[_Entry]


@lru_cache(maxsize=1)
def alpha_beta_constants() -> dict[tuple[str, str], AlphaBeta]:
    """All fitted constants by topology and operation."""
    file = resources.files("hardware_profiles") / CONSTANTS_FILE
    document = _Document.model_validate(read_yaml(file, CONSTANTS_FILE))
    return {(entry.topology, entry.operation): entry.constants() for entry in document.entries}
