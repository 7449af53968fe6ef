"""Accelerator facts: what a datasheet says of one device, read from ``hardware_profiles``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator as its datasheet states it (dense rates: no structured sparsity).

    ``peak_flops_per_s`` maps a dtype ("fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4", "int4") to dense
    operations per second; a dtype that the tensor cores lack is absent. ``interconnect_bytes_per_s`` is the bandwidth of the
    scale-up links (NVLink, Infinity Fabric) per device and direction, None without them;
    ``interconnect_domain`` is how many devices those links join (1 without them).
    """

    name: str
    title: str
    vendor: str
    architecture: str
    compute_capability: str | None
    multiprocessors: int
    boost_clock_hz: float
    peak_flops_per_s: dict[str, float]
    memory_bytes: int
    memory_bandwidth_bytes_per_s: float
    l2_bytes: int
    shared_memory_per_multiprocessor_bytes: int
    interconnect_bytes_per_s: float | None
    interconnect_domain: int
    pcie_bytes_per_s: float
    tdp_w: float
    idle_w: float
    price_usd_per_h: float
    price_date: str
    sources: dict[str, str]
