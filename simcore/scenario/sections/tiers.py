"""Memory below the GPU's in a scenario."""

from typing import Annotated, Literal

from pydantic import Field

from simcore.workload.config.section import Section

Gigabytes = Annotated[float, Field(gt=0, le=1e9)]
GigabytesPerSecond = Annotated[float, Field(gt=0, le=1e6)]
Latency = Annotated[float, Field(ge=0, le=3600)]

TIER_ORDER = ("cpu", "ssd", "remote")


class HostLink(Section):
    """The link between each accelerator and CPU memory."""

    to_gpu_gb_per_s: GigabytesPerSecond | None = None
    """Bandwidth to each accelerator, GB/s. By default the raw rate of its PCIe or NVLink-C2C."""
    from_gpu_gb_per_s: GigabytesPerSecond | None = None
    """Bandwidth from each accelerator, GB/s. The same default."""
    latency_s: Latency = 0.0
    """From the last byte sent to its arrival, seconds."""


class CpuTier(Section):
    """CPU memory of one replica that keeps copies of KV blocks."""

    name: Literal["cpu"]
    capacity_gb: Gigabytes
    """CPU memory of each replica, GB (10^9 bytes)."""


class StorageTier(Section):
    """A disk or a remote store of one replica, and the link between it and CPU memory."""

    name: Literal["ssd", "remote"]
    capacity_gb: Gigabytes
    """Room of each replica, GB (10^9 bytes)."""
    read_gb_per_s: GigabytesPerSecond
    """Bandwidth to CPU memory, GB/s."""
    write_gb_per_s: GigabytesPerSecond
    """Bandwidth from CPU memory, GB/s."""
    latency_s: Latency = 0.0
    """From the last byte sent to its arrival, either way, seconds."""


TierSection = Annotated[CpuTier | StorageTier, Field(discriminator="name")]
