"""The GPU at hand: what it is, and the two ceilings that kernels are held against."""

import platform
import subprocess
from dataclasses import asdict, dataclass

import torch
import triton

from benchmarks.kernels.timing import gpu_times


@dataclass(frozen=True, slots=True)
class Machine:
    """Name and versions; the ceilings as measured here, in bytes (read and written) and operations per second."""

    gpu: str
    driver: str
    cuda: str
    torch: str
    triton: str
    python: str
    copy_bytes_per_s: float
    matmul_bf16_per_s: float

    def as_json(self) -> dict[str, str | float]:
        """For the results file."""
        return asdict(self)


def measure(device: torch.device) -> Machine:
    """Ask the GPU and measure a copy of 4 GiB and the vendor library's product of 8192 x 8192 bf16 matrices."""
    return Machine(
        gpu=torch.cuda.get_device_name(device),
        driver=query("driver_version"),
        cuda=str(torch.version.cuda),
        torch=torch.__version__,
        triton=triton.__version__,
        python=platform.python_version(),
        copy_bytes_per_s=_copy_rate(device),
        matmul_bf16_per_s=_product_rate(device),
    )


def _copy_rate(device: torch.device) -> float:
    source = torch.randn(2**30, device=device)
    target = torch.empty_like(source)
    return 2 * source.nbytes / gpu_times([lambda: target.copy_(source)]).median_s


def _product_rate(device: torch.device) -> float:
    a, b = (torch.randn(8192, 8192, device=device, dtype=torch.bfloat16) for _ in range(2))
    return 2 * 8192**3 / gpu_times([lambda: torch.matmul(a, b)]).median_s


def query(what: str) -> str:
    """One property of the first GPU as ``nvidia-smi`` names and tells it, for example ``clocks.sm``."""
    command = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits", "--id=0"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
