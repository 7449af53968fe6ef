"""The GPU at hand: what it is, and the two ceilings that kernels are held against."""

import platform
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from types import TracebackType

import torch
import triton

from benchmarks.kernels.timing import gpu_times, host_times


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
    """Ask the GPU and measure a copy of 4 GiB and the vendor library's GEMM of 8192 x 8192 bf16 matrices."""
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


def interpreter() -> Machine:
    """What stands for a GPU where kernels are interpreted; its ceilings are this CPU's, and say nothing of a GPU."""
    source = torch.randn(2**20)
    target = torch.empty_like(source)
    a, b = torch.randn(2, 256, 256)
    return Machine(
        gpu="none: Triton's interpreter",
        driver="none",
        cuda="none",
        torch=torch.__version__,
        triton=triton.__version__,
        python=platform.python_version(),
        copy_bytes_per_s=2 * source.nbytes / host_times([lambda: target.copy_(source)]).median_s,
        matmul_bf16_per_s=2 * 256**3 / host_times([lambda: torch.matmul(a, b)]).median_s,
    )


def query(what: str) -> str:
    """One property of the first GPU as ``nvidia-smi`` names and tells it, for example ``driver_version``."""
    command = [*_SMI, f"--query-gpu={what}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


_SMI = ("nvidia-smi", "--id=0", "--format=csv,noheader,nounits")
_CLOCK = (*_SMI, "--query-gpu=clocks.sm", "--loop-ms=100")


class ClockReader:
    """The clock of the first GPU's multiprocessors, as ``nvidia-smi`` tells it ten times a second.

    It is read while kernels are timed, since asking after each of them would take longer than they do.
    """

    def __init__(self, command: Sequence[str] = _CLOCK) -> None:
        self._command = command
        self._latest: int | None = None

    def __enter__(self) -> "ClockReader":
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip().isdigit():
                self._latest = int(line)

    def mhz(self) -> int | None:
        """The latest reading; none before the first, or where the clock is not told."""
        return self._latest
