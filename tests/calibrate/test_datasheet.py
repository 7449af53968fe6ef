"""Datasheets of devices that nobody described, and the names by which drivers know the others."""

import yaml

from calibrate.datasheet import KNOWN_DEVICES, started_datasheet
from simcore.hardware import accelerator_names, load_accelerator


def test_devices_that_are_known_have_datasheets():
    assert set(KNOWN_DEVICES.values()) <= set(accelerator_names())


def test_a_started_datasheet_says_what_is_measured_and_what_is_not(tmp_path):
    rates = {"copy_bytes_per_s": 2e10, "matmul_fp32_per_s": 1e11}
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(started_datasheet("My CPU", rates, 2**34)))
    found = load_accelerator(str(path))
    assert (found.name, found.title, found.memory_bytes) == ("mine", "My CPU", 2**34)
    assert found.peak_flops_per_s["fp32"] == found.peak_flops_per_s["bf16"] > 1e11
    assert found.memory_bandwidth_bytes_per_s > 2e10
    assert found.sources["memory_bandwidth_bytes_per_s"].startswith("Measured here")
    assert found.sources["price_usd_per_h"].startswith("Not known of this device")
