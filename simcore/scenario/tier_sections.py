"""The sections of a scenario about memory below the GPU's."""

from typing import Annotated, Literal

from pydantic import Field

from simcore.workload.config.section import Section

Gigabytes = Annotated[float, Field(gt=0, le=1e9)]
GigabytesPerSecond = Annotated[float, Field(gt=0, le=1e6)]
Latency = Annotated[float, Field(ge=0, le=3600)]

TIER_ORDER = ("cpu", "ssd", "remote")


class HostLink(Section):
    """The link between each accelerator and CPU memory, by default at the raw rate of its profile."""

    to_gpu_gb_per_s: GigabytesPerSecond | None = None
    from_gpu_gb_per_s: GigabytesPerSecond | None = None
    latency_s: Latency = 0.0


class CpuTier(Section):
    """CPU memory of one replica that keeps copies of KV blocks."""

    name: Literal["cpu"]
    capacity_gb: Gigabytes


class StorageTier(Section):
    """A disk or a remote store of one replica, and the link between it and CPU memory."""

    name: Literal["ssd", "remote"]
    capacity_gb: Gigabytes
    read_gb_per_s: GigabytesPerSecond
    write_gb_per_s: GigabytesPerSecond
    latency_s: Latency = 0.0


TierSection = Annotated[CpuTier | StorageTier, Field(discriminator="name")]
