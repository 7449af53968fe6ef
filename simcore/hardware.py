"""Accelerator facts: what a datasheet says of one device, read from ``hardware_profiles``."""

import datetime
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Self

import pydantic
from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from simcore.core.bounds import MOST_COUNT, MOST_FIGURE, Count, Figure, UsdPerHour
from simcore.core.errors import UnknownNameError
from simcore.core.validation import explain
from simcore.core.yaml_text import read_yaml


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator as its datasheet states it (dense rates: no structured sparsity).

    ``peak_flops_per_s`` maps a dtype ("fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4", "int4") to dense
    operations per second, accumulated in fp32 where the datasheet tells; a dtype that the tensor cores lack is absent.
    ``sustained_flops_per_s`` are the rates of GEMMs once the power limit has lowered the clock, where such
    were measured.
    ``memory_bytes`` is what the driver offers to programs where that is known: an engine plans its KV cache with it,
    and it differs from the gigabytes in the product's name. ``l2_bytes`` is the last cache that all
    multiprocessors share. ``interconnect_bytes_per_s`` is the bandwidth of the
    scale-up links (NVLink, Infinity Fabric) per device and direction, None without them;
    ``interconnect_domain`` is how many devices those links join (1 without them). ``pcie_bytes_per_s`` is the raw rate
    of the link to the host per direction (NVLink-C2C where that takes the place of PCIe), and ``pcie_peer_to_peer``
    tells whether devices reach each other's memory over it. ``idle_w`` is drawn with no process on the device.
    ``sources`` maps the name of each of these fields to where its figure comes from.
    """

    name: str
    title: str
    vendor: str
    architecture: str
    compute_capability: str | None
    multiprocessors: int
    boost_clock_hz: float
    peak_flops_per_s: dict[str, float]
    sustained_flops_per_s: dict[str, float]
    memory_bytes: int
    memory_bandwidth_bytes_per_s: float
    l2_bytes: int
    shared_memory_per_multiprocessor_bytes: int
    interconnect_bytes_per_s: float | None
    interconnect_domain: int
    pcie_bytes_per_s: float
    pcie_peer_to_peer: bool
    tdp_w: float
    idle_w: float
    price_usd_per_h: float
    price_date: str
    sources: dict[str, str]


def accelerator_names() -> tuple[str, ...]:
    """Names of the accelerators that come with servetwin, in alphabetical order."""
    return tuple(sorted(_shipped_profiles()))


def load_accelerator(name_or_path: str) -> Accelerator:
    """The accelerator of that name (see ``accelerator_names``), or the one described in a YAML file of one's own.

    Anything that ends in ``.yaml`` or ``.yml`` or contains a slash is a path. Raises ``UnknownNameError`` for a name
    that is not shipped, ``FileError`` for a file that is missing or no YAML, and ``InputError``, naming file and
    field, for a figure that is missing, unknown or out of range.
    """
    shipped = _shipped_profiles()
    if name_or_path in shipped:
        return _read(shipped[name_or_path], name_or_path, f"{name_or_path}.yaml")
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        return _read(path, path.stem, name_or_path)
    raise UnknownNameError("cluster.accelerator", name_or_path, shipped)


def _shipped_profiles() -> dict[str, Traversable]:
    files = resources.files("hardware_profiles").iterdir()
    return {file.name.removesuffix(".yaml"): file for file in files if file.name.endswith(".yaml")}


def _read(file: Traversable, name: str, shown_path: str) -> Accelerator:
    try:
        profile = _Profile.model_validate(read_yaml(file, shown_path))
    except pydantic.ValidationError as error:
        raise explain(error, _Profile, f"{shown_path}: ") from error
    return profile.datasheet.accelerator(name)


Text = Annotated[str, Field(min_length=1)]


class _Strict(pydantic.BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class _Sourced(_Strict):
    """Figures that one source vouches for: document, date or version, and how it was read."""

    source: Text


class _Processor(_Sourced):
    compute_capability: str | None
    multiprocessors: Count
    boost_clock_mhz: Figure


class _PeakRates(_Sourced):
    fp32: Figure
    tf32: Figure | None = None
    fp16: Figure
    bf16: Figure
    fp8: Figure | None = None
    int8: Figure | None = None
    fp4: Figure | None = None
    int4: Figure | None = None

    def per_s(self) -> dict[str, float]:
        rates = self.model_dump(exclude={"source"}, exclude_none=True)
        return {dtype: rate * 1e12 for dtype, rate in rates.items()}


class _SustainedRates(_Sourced):
    bf16: Figure
    fp8: Figure | None = None

    def per_s(self) -> dict[str, float]:
        rates = self.model_dump(exclude={"source"}, exclude_none=True)
        return {dtype: rate * 1e12 for dtype, rate in rates.items()}


class _MemoryCapacity(_Sourced):
    usable_mib: Figure


class _MemoryBandwidth(_Sourced):
    gb_per_s: Figure


class _OnChipMemory(_Sourced):
    l2_mib: Figure
    shared_per_multiprocessor_kib: int = Field(ge=0, le=MOST_COUNT)


class _Interconnect(_Sourced):
    gb_per_s_per_direction: Figure | None
    domain_devices: Count

    @model_validator(mode="after")
    def _links_join_devices(self) -> Self:
        if (self.gb_per_s_per_direction is None) != (self.domain_devices == 1):
            raise ValueError("a bandwidth and a domain of at least 2 devices, or no bandwidth and a domain of 1")
        return self


class _HostLink(_Sourced):
    gb_per_s_per_direction: Figure
    peer_to_peer: bool = True


class _PowerLimit(_Sourced):
    tdp_w: Figure


class _IdlePower(_Sourced):
    idle_w: float = Field(ge=0, le=MOST_FIGURE)


def _date(text: Any) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except (TypeError, ValueError):
        raise ValueError("a date such as 2026-09-20") from None


class _Price(_Sourced):
    usd_per_h: UsdPerHour
    date: Annotated[datetime.date, BeforeValidator(_date)]


class _Datasheet(_Strict):
    """The units are those of datasheets: MHz, 10^12 operations, 10^9 bytes; MiB and KiB are powers of two."""

    title: Text
    vendor: Text
    architecture: Text
    processor: _Processor
    peak_dense_tera_operations_per_s: _PeakRates
    sustained_tera_operations_per_s: _SustainedRates | None = None
    memory_capacity: _MemoryCapacity
    memory_bandwidth: _MemoryBandwidth
    on_chip_memory: _OnChipMemory
    interconnect: _Interconnect
    host_link: _HostLink
    power_limit: _PowerLimit
    idle_power: _IdlePower
    price: _Price

    def accelerator(self, name: str) -> Accelerator:
        link = self.interconnect.gb_per_s_per_direction
        sustained = self.sustained_tera_operations_per_s
        return Accelerator(
            name=name,
            title=self.title,
            vendor=self.vendor,
            architecture=self.architecture,
            compute_capability=self.processor.compute_capability,
            multiprocessors=self.processor.multiprocessors,
            boost_clock_hz=self.processor.boost_clock_mhz * 1e6,
            peak_flops_per_s=self.peak_dense_tera_operations_per_s.per_s(),
            sustained_flops_per_s=sustained.per_s() if sustained is not None else {},
            memory_bytes=round(self.memory_capacity.usable_mib * 2**20),
            memory_bandwidth_bytes_per_s=self.memory_bandwidth.gb_per_s * 1e9,
            l2_bytes=round(self.on_chip_memory.l2_mib * 2**20),
            shared_memory_per_multiprocessor_bytes=self.on_chip_memory.shared_per_multiprocessor_kib * 2**10,
            interconnect_bytes_per_s=None if link is None else link * 1e9,
            interconnect_domain=self.interconnect.domain_devices,
            pcie_bytes_per_s=self.host_link.gb_per_s_per_direction * 1e9,
            pcie_peer_to_peer=self.host_link.peer_to_peer,
            tdp_w=self.power_limit.tdp_w,
            idle_w=self.idle_power.idle_w,
            price_usd_per_h=self.price.usd_per_h,
            price_date=self.price.date.isoformat(),
            sources={
                "compute_capability": self.processor.source,
                "multiprocessors": self.processor.source,
                "boost_clock_hz": self.processor.source,
                "peak_flops_per_s": self.peak_dense_tera_operations_per_s.source,
                "sustained_flops_per_s": sustained.source if sustained is not None else "not measured on this device",
                "memory_bytes": self.memory_capacity.source,
                "memory_bandwidth_bytes_per_s": self.memory_bandwidth.source,
                "l2_bytes": self.on_chip_memory.source,
                "shared_memory_per_multiprocessor_bytes": self.on_chip_memory.source,
                "interconnect_bytes_per_s": self.interconnect.source,
                "interconnect_domain": self.interconnect.source,
                "pcie_bytes_per_s": self.host_link.source,
                "pcie_peer_to_peer": self.host_link.source,
                "tdp_w": self.power_limit.source,
                "idle_w": self.idle_power.source,
                "price_usd_per_h": self.price.source,
                "price_date": self.price.source,
            },
        )


class _Profile(_Strict):
    """A profile file. What was measured on the device stands in ``calibrated``, which cost models read themselves."""

    datasheet: _Datasheet
    calibrated: dict[str, Any] | None = None
