"""What calibration asks of a machine: candidates to measure, and one repetition of one at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Value = str | int


@dataclass(frozen=True, slots=True)
class KernelPoint:
    """A kernel of one shape: its kind, and the values of ``calibrate.samples.SHAPE_COLUMNS`` of the kind, in order."""

    kind: str
    shape: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that can be measured at once: the kernels in it, and how many of each there are.

    ``name`` tells it apart. ``use`` is how much target models need it, beside others: the time that they spend in
    steps like it counts so many times. Those of the ``coarse`` design are measured first, whatever is known.
    """

    name: str
    kernels: Mapping[KernelPoint, int]
    use: float = 1.0
    coarse: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """One repetition: seconds of each kernel, and of all that there was, what is no kernel included.

    ``disturbed``: something else ran meanwhile. ``rest_s`` is the part that belongs to no kernel.
    """

    seconds: Mapping[KernelPoint, float]
    total_s: float
    rest_s: float = 0.0
    disturbed: bool = False
    conditions: Mapping[str, float] = field(default_factory=dict)


class Device(Protocol):
    """A machine, or whatever stands for one."""

    def candidates(self) -> Sequence[Candidate]:
        """All that may be measured."""

    def read(self, candidate: Candidate) -> Reading:
        """Measure once."""
