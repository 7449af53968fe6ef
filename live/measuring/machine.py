"""What a machine is: the device, what computes on it, and the two ceilings that kernels are held against."""

import os
import platform
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import torch

_COPY_BYTES = 2**27
_PRODUCT = 1024
_REPEATS = 7


def facts(device: str, dtype: str) -> dict[str, str]:
    """Device, driver, versions and threads: what a profile is of, and no other machine's."""
    place = torch.device(device)
    found = {"dtype": dtype, "torch": str(torch.__version__)}
    if place.type == "cpu":
        return {"device": processor(), "threads": str(torch.get_num_threads()), **found}
    import triton

    asked = query("driver_version", place.index or 0)
    driver = {"driver": asked} if asked else {}
    versions = {"cuda": str(torch.version.cuda), "triton": triton.__version__}
    return {"device": torch.cuda.get_device_name(place), **driver, **versions, **found}


def processor() -> str:
    """The processor's name."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def query(what: str, index: int = 0) -> str | None:
    """One property of a GPU as ``nvidia-smi`` names it; None where it cannot be asked."""
    command = ["nvidia-smi", f"--id={index}", "--format=csv,noheader,nounits", f"--query-gpu={what}"]
    try:
        found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()


def load(device: str) -> float:
    """How busy the device is with others' work, from 0 to 1: the CPUs' share, or a GPU's utilisation."""
    place = torch.device(device)
    if place.type == "cuda":
        asked = query("utilization.gpu", place.index or 0)
        return float(asked) / 100 if asked and asked.isdigit() else 0.0
    return cpu_load()


def cpu_load(seconds: float = 0.5) -> float:
    """The share of all processors that was busy in the next moment, this process asleep."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return min(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0)

    def counted() -> tuple[int, int]:
        numbers = [int(word) for word in stat.read_text(encoding="utf-8").splitlines()[0].split()[1:]]
        return sum(numbers[:8]), numbers[3] + numbers[4]

    total, idle = counted()
    time.sleep(seconds)
    later_total, later_idle = counted()
    passed = later_total - total
    return 1 - (later_idle - idle) / passed if passed else 0.0


def ceilings(device: str, now_ns: Callable[[], int] = time.perf_counter_ns) -> dict[str, float]:
    """Bytes read and written per second by a copy past the caches, and operations per second of GEMMs, by dtype.

    The best of several repetitions each, as what is looked for is what the device can do.
    """
    place = torch.device(device)
    source = torch.ones(_COPY_BYTES // 4, device=place)
    target = torch.empty_like(source)
    found = {"copy_bytes_per_s": 2 * source.nbytes / _best_s(lambda: target.copy_(source), place, now_ns)}
    size = _PRODUCT if place.type == "cpu" else 8 * _PRODUCT
    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16}
    for name, dtype in dtypes.items():
        a, b = (torch.ones(size, size, device=place, dtype=dtype) for _ in range(2))
        seconds = _best_s(lambda a=a, b=b: a @ b, place, now_ns)  # type: ignore[misc]
        found[f"matmul_{name}_per_s"] = 2 * size**3 / seconds
    if place.type == "cuda":
        host = torch.ones(_COPY_BYTES // 4, pin_memory=True)
        there = torch.empty_like(host, device=place)
        found["host_to_device_bytes_per_s"] = host.nbytes / _best_s(
            lambda: there.copy_(host, non_blocking=True), place, now_ns
        )
        found["device_to_host_bytes_per_s"] = host.nbytes / _best_s(
            lambda: host.copy_(there, non_blocking=True), place, now_ns
        )
    return found


def _best_s(action: Callable[[], object], place: torch.device, now_ns: Callable[[], int]) -> float:
    best = float("inf")
    for _ in range(_REPEATS):
        if place.type == "cuda":
            torch.cuda.synchronize(place)
        began = now_ns()
        action()
        if place.type == "cuda":
            torch.cuda.synchronize(place)
        best = min(best, (now_ns() - began) * 1e-9)
    return best
