"""The shipped accelerator facts: complete, sourced, consistent with themselves and with public data; bad files."""

import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from simcore.core.errors import FileError, InputError, UnknownNameError
from simcore.hardware import Accelerator, accelerator_names, load_accelerator

NAMES = (
    "a100-pcie-80gb",
    "a100-sxm-40gb",
    "a100-sxm-80gb",
    "a10g",
    "a40",
    "b200",
    "b300",
    "cpu-generic",
    "gb200",
    "gb300",
    "h100-nvl",
    "h100-pcie",
    "h100-sxm",
    "h20",
    "h200-sxm",
    "l4",
    "l40s",
    "mi300x",
    "rtx-4090",
    "rtx-5090",
    "rtx-pro-6000-blackwell",
)
GPUS = tuple(name for name in NAMES if name != "cpu-generic")
DESCRIPTIONS = {"name", "title", "vendor", "architecture", "sources"}

# Dense fp16 operations, accumulated in fp32, per multiprocessor and clock (architecture whitepapers).
FP16_OPERATIONS_PER_CLOCK = {
    "a100-pcie-80gb": 2048,
    "a100-sxm-40gb": 2048,
    "a100-sxm-80gb": 2048,
    "a10g": 512,
    "a40": 1024,
    "b200": 8192,
    "b300": 8192,
    "gb200": 8192,
    "gb300": 8192,
    "h100-nvl": 4096,
    "h100-pcie": 4096,
    "h100-sxm": 4096,
    "h20": 4096,
    "h200-sxm": 4096,
    "l4": 1024,
    "l40s": 1024,
    "mi300x": 2048,
    "rtx-4090": 512,
    "rtx-5090": 512,
    "rtx-pro-6000-blackwell": 1024,
}

# Width of the memory bus in bits and rate of one line in Gbit/s.
MEMORY_BUS = {
    "a10g": (384, 12.5),
    "b200": (7680, 2 * 3.996),
    "cpu-generic": (8 * 64, 4.8),
    "h100-nvl": (6016, 2 * 2.619),
    "l4": (192, 12.5),
    "l40s": (384, 18),
    "mi300x": (8192, 5.2),
    "rtx-4090": (384, 21),
    "rtx-5090": (512, 28),
    "rtx-pro-6000-blackwell": (512, 28),
}

# Gigabytes in the product's name.
NOMINAL_GB = {
    "a100-pcie-80gb": 80,
    "a100-sxm-40gb": 40,
    "a100-sxm-80gb": 80,
    "a10g": 24,
    "a40": 48,
    "b200": 180,
    "b300": 288,
    "gb200": 186,
    "gb300": 288,
    "h100-nvl": 94,
    "h100-pcie": 80,
    "h100-sxm": 80,
    "h20": 96,
    "h200-sxm": 141,
    "l4": 24,
    "l40s": 48,
    "mi300x": 192,
    "rtx-4090": 24,
    "rtx-5090": 32,
    "rtx-pro-6000-blackwell": 96,
}


def test_names_are_known_and_sorted() -> None:
    assert accelerator_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_has_a_source(name: str) -> None:
    accelerator = load_accelerator(name)
    figures = {field.name for field in dataclasses.fields(Accelerator)} - DESCRIPTIONS
    assert accelerator.name == name
    assert set(accelerator.sources) == figures
    assert all(len(source.split()) >= 3 for source in accelerator.sources.values())


@pytest.mark.parametrize("name", NAMES)
def test_price_is_dated_and_says_who_asks_it(name: str) -> None:
    accelerator = load_accelerator(name)
    date = datetime.date.fromisoformat(accelerator.price_date)
    assert datetime.date(2025, 1, 1) < date
    assert accelerator.price_date in accelerator.sources["price_usd_per_h"]
    assert 0.1 < accelerator.price_usd_per_h < 20
    assert "override" in accelerator.sources["price_usd_per_h"]


@pytest.mark.parametrize("name", GPUS)
def test_peak_follows_from_multiprocessors_and_clock(name: str) -> None:
    accelerator = load_accelerator(name)
    at_boost = accelerator.multiprocessors * FP16_OPERATIONS_PER_CLOCK[name] * accelerator.boost_clock_hz
    # Hopper and Blackwell quote tensor rates at a lower clock than the highest one.
    least, most = (0.2, 0.3) if name == "h20" else (0.85, 1.01)  # which is capped
    assert least < accelerator.peak_flops_per_s["fp16"] / at_boost < most


@pytest.mark.parametrize("name", NAMES)
def test_narrower_numbers_run_faster_by_the_known_factors(name: str) -> None:
    peak = load_accelerator(name).peak_flops_per_s
    assert peak["bf16"] == peak["fp16"]
    assert peak["fp32"] < peak["fp16"]
    if "tf32" in peak:
        assert peak["fp16"] / peak["tf32"] == pytest.approx(2, rel=0.03)  # datasheets round tf32
    if "fp8" in peak:
        assert peak["fp8"] / peak["fp16"] == pytest.approx(2, rel=0.02)
    ultra = name.endswith("b300")  # has more fp4 instead of int8
    # GeForce halves fp8, but neither int8 nor fp4, when it accumulates in fp32.
    if not ultra:
        assert peak["int8"] / peak["fp16"] == pytest.approx(
            4 if name.startswith("rtx-40") or name == "rtx-5090" else 2, rel=0.02
        )
    if "fp4" in peak:
        assert peak["fp4"] / peak["fp8"] == pytest.approx(4 if name == "rtx-5090" else 3 if ultra else 2, rel=0.02)


def test_low_precision_is_listed_only_where_the_hardware_has_it() -> None:
    have = {dtype: {n for n in NAMES if dtype in load_accelerator(n).peak_flops_per_s} for dtype in ("fp8", "fp4")}
    assert have["fp4"] == {"b200", "b300", "gb200", "gb300", "rtx-5090", "rtx-pro-6000-blackwell"}
    assert set(NAMES) - have["fp8"] == {n for n in NAMES if n.startswith(("a1", "a4"))} | {"cpu-generic"}


@pytest.mark.parametrize(("name", "bus"), MEMORY_BUS.items())
def test_memory_bandwidth_is_bus_width_times_rate(name: str, bus: tuple[int, float]) -> None:
    bits, gbit_per_s = bus
    assert load_accelerator(name).memory_bandwidth_bytes_per_s == pytest.approx(bits / 8 * gbit_per_s * 1e9, rel=0.005)


@pytest.mark.parametrize(("name", "gigabytes"), NOMINAL_GB.items())
def test_usable_memory_is_near_the_nominal_one(name: str, gigabytes: int) -> None:
    # A gigabyte in a product's name is 10^9 bytes at least, 2^30 at most, before ECC and the driver take theirs.
    assert 0.98 * gigabytes * 1e9 < load_accelerator(name).memory_bytes <= gigabytes * 2**30


@pytest.mark.parametrize("name", GPUS)
def test_ridge_point_of_the_roofline(name: str) -> None:
    accelerator = load_accelerator(name)
    operations_per_byte = accelerator.peak_flops_per_s["bf16"] / accelerator.memory_bandwidth_bytes_per_s
    assert (30 if name == "h20" else 100) < operations_per_byte < 450


@pytest.mark.parametrize("name", NAMES)
def test_figures_lie_in_sane_bands(name: str) -> None:
    accelerator = load_accelerator(name)
    assert 4 * 2**20 <= accelerator.l2_bytes <= 256 * 2**20
    assert accelerator.shared_memory_per_multiprocessor_bytes <= 228 * 2**10
    assert 30e9 <= accelerator.pcie_bytes_per_s < accelerator.memory_bandwidth_bytes_per_s
    assert 0 < accelerator.idle_w < 0.35 * accelerator.tdp_w
    if accelerator.interconnect_bytes_per_s is None:
        assert accelerator.interconnect_domain == 1
    else:
        assert accelerator.pcie_bytes_per_s < accelerator.interconnect_bytes_per_s
        assert accelerator.interconnect_domain in (2, 8, 72)


@pytest.mark.parametrize(
    ("name", "compute_capability", "shared_kib"),
    [
        ("a100-sxm-80gb", "8.0", 164),
        ("a10g", "8.6", 100),
        ("l40s", "8.9", 100),
        ("h200-sxm", "9.0", 228),
        ("b200", "10.0", 228),
        ("rtx-5090", "12.0", 100),
        ("mi300x", None, 64),
    ],
)
def test_shared_memory_by_compute_capability(name: str, compute_capability: str | None, shared_kib: int) -> None:
    accelerator = load_accelerator(name)
    assert accelerator.compute_capability == compute_capability
    assert accelerator.shared_memory_per_multiprocessor_bytes == shared_kib * 2**10


@pytest.mark.parametrize(
    ("name", "file"),
    [("a100-sxm-80gb", "a100_sxm"), ("h100-sxm", "h100_sxm"), ("h200-sxm", "h200_sxm")],
)
def test_agrees_with_aiconfigurator(name: str, file: str, shared_data: Path) -> None:
    accelerator = load_accelerator(name)
    system = yaml.safe_load((shared_data / "profiles" / "aiconfigurator" / f"{file}.yaml").read_text())
    gpu, node = system["gpu"], system["node"]
    assert accelerator.memory_bandwidth_bytes_per_s == gpu["mem_bw"]
    assert accelerator.peak_flops_per_s["bf16"] == pytest.approx(gpu["bfloat16_tc_flops"], rel=1e-3)
    assert accelerator.peak_flops_per_s["int8"] == pytest.approx(gpu["int8_tc_flops"], rel=1e-3)
    if "fp8_tc_flops" in gpu:
        assert accelerator.peak_flops_per_s["fp8"] == pytest.approx(gpu["fp8_tc_flops"], rel=1e-3)
    assert accelerator.tdp_w == gpu["power"]
    assert accelerator.interconnect_bytes_per_s == node["intra_node_bw"]
    assert accelerator.interconnect_domain == node["num_gpus_per_node"]
    assert accelerator.pcie_bytes_per_s == node["pcie_bw"]
    # Nominal capacity there, what the driver leaves of it here.
    assert 0.98 * gpu["mem_capacity"] < accelerator.memory_bytes < gpu["mem_capacity"]


def test_memory_is_what_an_engine_saw(shared_data: Path) -> None:
    run = shared_data / "measured" / "vllm-per-request" / "RTX4090_Llama-3.1-8B" / "meta.json"
    hardware = json.loads(run.read_text())["hardware"]
    accelerator = load_accelerator("rtx-4090")
    assert accelerator.memory_bytes == hardware["device_total_memory_bytes"]
    assert accelerator.compute_capability == hardware["device_capability"]


# ---- files of one's own, good and bad


@pytest.fixture
def document() -> dict[str, Any]:
    shipped = Path(__file__).resolve().parents[2] / "hardware_profiles" / "h100-sxm.yaml"
    content: dict[str, Any] = yaml.safe_load(shipped.read_text())
    return content


def load_document(document: Any, folder: Path) -> Accelerator:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(document))
    return load_accelerator(str(path))


def test_a_file_of_ones_own_is_named_by_its_stem(document: dict[str, Any], tmp_path: Path) -> None:
    mine = load_document(document, tmp_path)
    assert mine == dataclasses.replace(load_accelerator("h100-sxm"), name="mine")


def test_a_calibrated_section_is_left_alone(document: dict[str, Any], tmp_path: Path) -> None:
    mine = load_document(document | {"calibrated": {"anything": [1, {"deep": None}]}}, tmp_path)
    assert mine.memory_bandwidth_bytes_per_s == 3.35e12


@pytest.mark.parametrize(
    ("section", "change", "expected"),
    [
        (
            "memory_bandwidth",
            {"gb_per_s": -1},
            "datasheet.memory_bandwidth.gb_per_s is -1, expected a number of at least 1e-06",
        ),
        ("memory_bandwidth", {"gb_per_s": "fast"}, "datasheet.memory_bandwidth.gb_per_s is 'fast', expected a number"),
        ("memory_bandwidth", {"gb_per_s": True}, "datasheet.memory_bandwidth.gb_per_s is true, expected a number"),
        ("memory_bandwidth", {"source": ""}, "datasheet.memory_bandwidth.source is '', expected"),
        ("processor", {"multiprocessors": 1.5}, "datasheet.processor.multiprocessors is 1.5, expected a whole number"),
        ("price", {"date": "soon"}, "datasheet.price.date is 'soon', expected a date such as"),
        ("price", {"eur_per_h": 1.0}, "datasheet.price.eur_per_h is an unknown field"),
        ("peak_dense_tera_operations_per_s", {"fp61": 1.0}, "Did you mean 'fp16'?"),
        (
            "interconnect",
            {"domain_devices": 1},
            "datasheet.interconnect is a mapping of domain_devices, gb_per_s_per_direction, source, expected a",
        ),
        (
            "interconnect",
            {"gb_per_s_per_direction": None},
            "datasheet.interconnect is a mapping of domain_devices, source, expected a bandwidth",
        ),
    ],
)
def test_wrong_figures_name_file_and_field(
    section: str, change: dict[str, Any], expected: str, document: dict[str, Any], tmp_path: Path
) -> None:
    document["datasheet"][section].update(change)
    with pytest.raises(InputError) as caught:
        load_document(document, tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'mine.yaml'}: datasheet.{section}")
    assert expected in str(caught.value)


@pytest.mark.parametrize("figure", ["gb_per_s", "source"])
def test_missing_figure_or_source(figure: str, document: dict[str, Any], tmp_path: Path) -> None:
    del document["datasheet"]["memory_bandwidth"][figure]
    with pytest.raises(InputError, match=f"datasheet.memory_bandwidth.{figure} is missing, expected"):
        load_document(document, tmp_path)


@pytest.mark.parametrize("content", [None, [1], "h100", {}, {"datashet": {}}])
def test_documents_that_are_no_profile(content: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mine\.yaml: .* expected"):
        load_document(content, tmp_path)


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        load_accelerator("h100_sxm")
    assert caught.value.field == "cluster.accelerator"
    assert caught.value.nearest == "h100-sxm"


@pytest.mark.parametrize("name", ["", "no-such-gpu", "H100-SXM"])
def test_names_are_exact(name: str) -> None:
    with pytest.raises(UnknownNameError):
        load_accelerator(name)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"gone\.yaml: no such file\.$"):
        load_accelerator(str(tmp_path / "gone.yaml"))


def test_folder_in_place_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is a folder, expected a YAML file"):
        load_accelerator(str(tmp_path))


def test_broken_yaml_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("datasheet:\n  title: x\n  vendor: [\n")
    with pytest.raises(FileError, match="not valid YAML") as caught:
        load_accelerator(str(path))
    assert caught.value.line == 4


def test_binary_file(tmp_path: Path) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="line 1: is not UTF-8 text"):
        load_accelerator(str(path))


@pytest.mark.parametrize(
    ("section", "change"),
    [
        ("memory_capacity", {"usable_mib": 1e308}),
        ("on_chip_memory", {"l2_mib": 1e308}),
        ("on_chip_memory", {"shared_per_multiprocessor_kib": 10**300}),
        ("processor", {"multiprocessors": 10**300}),
        ("memory_bandwidth", {"gb_per_s": 1e-300}),
        ("price", {"usd_per_h": 1e300}),
        ("idle_power", {"idle_w": 1e300}),
    ],
)
def test_figures_of_no_device(section: str, change: dict[str, Any], document: dict[str, Any], tmp_path: Path) -> None:
    document["datasheet"][section].update(change)
    with pytest.raises(InputError, match=rf"datasheet\.{section}\.{next(iter(change))} is .*, expected"):
        load_document(document, tmp_path)
