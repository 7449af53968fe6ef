"""What adapters add to a step."""

from dataclasses import dataclass
from math import ceil

from simcore.core.clock import NS_PER_S
from simcore.cost.roofline import Roofline
from simcore.models.adapters import AdapterShape

ADAPTER_BYTES = 2
"""Adapters are in 16 bits, whatever the weights are in."""


@dataclass(frozen=True, slots=True)
class AdapterCost:
    """The price of applying adapters, and of bringing one to the accelerator over ``link_bytes_per_s``.

    Kernels that multiply each token by its own adapter read every adapter of the batch once (SGMV: Chen et al., Punica,
    MLSys 2024, section 4), at the roofline of other kernels; no kernel is faster than the floor.
    """

    shape: AdapterShape
    roofline: Roofline
    link_bytes_per_s: float

    @property
    def size_bytes(self) -> int:
        """One adapter on one rank."""
        return self.shape.parameters * ADAPTER_BYTES

    @property
    def load_ns(self) -> int:
        """From host memory to a slot; ranks load their parts at once."""
        return ceil(self.size_bytes / self.link_bytes_per_s * NS_PER_S)

    def step_ns(self, adapters: int, tokens: int) -> int:
        """What a step takes longer in which so many tokens have so many different adapters."""
        roofline = self.roofline
        memory_s = roofline.memory_s(adapters * self.size_bytes)
        rate = roofline.matmul_flops_per_s * roofline.efficiency.matmul_compute
        compute_s = 2 * tokens * self.shape.parameters / rate
        return round(max(memory_s, compute_s, roofline.floors_s(self.shape.launches)) * NS_PER_S)
