"""Time the kernels: ``python -m benchmarks.kernels [MODULE...] --out FOLDER [--toy]``.

On a GPU every case is timed and the folder gets ``results.json`` and raw samples per kernel kind, from which fits are
made. ``--toy`` runs the same cases at toy sizes in Triton's interpreter, to show that the script is whole; what it
prints then says nothing about any GPU.
"""

import argparse
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import torch

from benchmarks.kernels import MODULES
from benchmarks.kernels.acceptance import ratios
from benchmarks.kernels.case import Case
from benchmarks.kernels.machine import measure, query
from benchmarks.kernels.results import Result, write_samples, write_summary
from benchmarks.kernels.timing import gpu_times, host_times, input_sets
from kernels.launch import interpreted

ACCELERATORS = {"NVIDIA H200": "h200-sxm", "NVIDIA H100 80GB HBM3": "h100-sxm", "NVIDIA B200": "b200-sxm"}


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=MODULES)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--toy", action="store_true")
    arguments = parser.parse_args()
    cases = [case for module in arguments.modules for case in _cases(module, arguments.toy)]
    if arguments.toy:
        if not interpreted():
            sys.exit("--toy runs in Triton's interpreter: set TRITON_INTERPRET=1")
        for case in cases:
            times = host_times([case.prepare(torch.device("cpu"))], repeats=1)
            print(f"{_told(case)}: ran in {times.median_s:.2f} s of interpretation")
        return
    if not torch.cuda.is_available():
        sys.exit("no GPU here; --toy with TRITON_INTERPRET=1 shows that the script runs")
    device = torch.device("cuda")
    machine = measure(device)
    print(f"{machine.gpu}: copy {machine.copy_bytes_per_s / 1e12:.2f} TB/s, ", end="")
    print(f"bf16 matmul {machine.matmul_bf16_per_s / 1e12:.0f} TFLOP/s", flush=True)
    results = []
    for case in cases:
        result = Result(case, gpu_times(input_sets(case, device)), int(query("clocks.sm")))
        results.append(result)
        print(
            f"{_told(case)}: {result.times.median_s * 1e6:.1f} us, {result.operations_per_s / 1e12:.0f} TFLOP/s, "
            f"{result.bytes_per_s / 1e12:.2f} TB/s",
            flush=True,
        )
    print("\n".join(ratios(machine, results)))
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        write_summary(machine, results, arguments.out / "results.json")
        accelerator = ACCELERATORS.get(machine.gpu, machine.gpu.lower().replace(" ", "-"))
        write_samples(accelerator, _version(), results, arguments.out)


def _cases(module: str, toy: bool) -> list[Case]:
    found: list[Case] = import_module(f"benchmarks.kernels.{module}").cases(toy)
    return found


def _version() -> str:
    with (Path(__file__).resolve().parents[2] / "pyproject.toml").open("rb") as stream:
        found: str = tomllib.load(stream)["project"]["version"]
    return found


def _told(case: Case) -> str:
    shape = " ".join(f"{name}={value}" for name, value in case.shape.items())
    return f"{case.kernel} {case.form} {case.dtype} {shape}"


if __name__ == "__main__":
    main()
