"""Datasheet files of accelerators that nobody described: started from what the machine says and what was measured."""

from collections.abc import Mapping
from importlib import resources
from typing import Any

import yaml

_MARGIN = 1.15
"""What the peak is taken to be of the best that was measured: other shapes may be faster a little."""

KNOWN_DEVICES = {
    "NVIDIA A100-SXM4-40GB": "a100-sxm-40gb",
    "NVIDIA A100-SXM4-80GB": "a100-sxm-80gb",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
    "NVIDIA A10G": "a10g",
    "NVIDIA B200": "b200",
    "NVIDIA H100 80GB HBM3": "h100-sxm",
    "NVIDIA H100 PCIe": "h100-pcie",
    "NVIDIA H100 NVL": "h100-nvl",
    "NVIDIA H200": "h200-sxm",
    "NVIDIA L4": "l4",
    "NVIDIA L40S": "l40s",
    "NVIDIA GeForce RTX 4090": "rtx-4090",
    "NVIDIA GeForce RTX 5090": "rtx-5090",
}
"""Accelerators by what the driver calls their devices."""


def started_datasheet(device: str, ceilings: Mapping[str, float], memory_bytes: int) -> dict[str, Any]:
    """A datasheet of a device: its rates are measured, all else is that of a generic one.

    ``ceilings`` has ``copy_bytes_per_s`` and ``matmul_fp32_per_s``, perhaps of bf16 too.
    """
    template = resources.files("hardware_profiles") / "cpu-generic.yaml"
    document: dict[str, Any] = yaml.safe_load(template.read_text(encoding="utf-8"))
    sheet = document["datasheet"]
    rates = {name: ceilings.get(f"matmul_{name}_per_s", 0.0) * _MARGIN / 1e12 for name in ("fp32", "bf16")}
    measured = f"Measured here: the best of several, and {_MARGIN - 1:.0%} more for what other shapes may reach."
    for name in ("processor", "interconnect", "host_link", "power_limit", "idle_power", "price", "on_chip_memory"):
        sheet[name]["source"] = "Not known of this device; what a generic one has: " + sheet[name]["source"]
    sheet["title"], sheet["vendor"] = device, "not known"
    peaks = {"fp32": rates["fp32"], "fp16": rates["bf16"] or rates["fp32"], "bf16": rates["bf16"] or rates["fp32"]}
    sheet["peak_dense_tera_operations_per_s"] = {**{k: _digits(v) for k, v in peaks.items()}, "source": measured}
    bandwidth = ceilings["copy_bytes_per_s"] * _MARGIN / 1e9
    sheet["memory_bandwidth"] = {"gb_per_s": _digits(bandwidth), "source": measured}
    sheet["memory_capacity"] = {"usable_mib": memory_bytes // 2**20, "source": "What the system says of it."}
    return document


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
