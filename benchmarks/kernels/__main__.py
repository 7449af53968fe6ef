"""Time the kernels: ``python -m benchmarks.kernels [MODULE...] [--out FOLDER] [--toy]``.

On a GPU every case is timed, those that targets speak of first, and what is not done within the time is told as such.
The folder gets one of its own for the GPU's accelerator, with ``results.json`` and raw samples per kernel kind, from
which fits are made. ``--toy`` runs the same at toy sizes in Triton's interpreter, to show that the script is whole:
what it prints and writes then says nothing about any GPU.
"""

import argparse
import sys
import tomllib
from collections.abc import Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from pathlib import Path

import torch

from benchmarks.kernels import MODULES, cases_of
from benchmarks.kernels.acceptance import first_those_that_count, ratios, told
from benchmarks.kernels.machine import ClockReader, Machine, interpreter, measure
from benchmarks.kernels.one_by_one import Deadline, compile_ahead, timed
from benchmarks.kernels.results import Missing, Result, write_samples, write_summary
from benchmarks.kernels.timing import Times, gpu_times, host_times, input_sets
from kernels.case import Case
from kernels.launch import interpreted

ACCELERATORS = {"NVIDIA H200": "h200-sxm", "NVIDIA H100 80GB HBM3": "h100-sxm", "NVIDIA B200": "b200-sxm"}
INTERPRETER = "interpreter"
WHOLE_S = 450
"""For all of it, that it ends within 8 minutes."""
COMPILE_S = 180
"""Of which so many may go to compiling ahead."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and write."""
    deadline = Deadline(WHOLE_S)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=MODULES)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--toy", action="store_true")
    given = parser.parse_args(arguments)
    for module in given.modules:
        if module not in MODULES:
            nearest = get_close_matches(module, MODULES, n=1) or MODULES
            sys.exit(f"no benchmark module is called {module}; did you mean {', '.join(nearest)}?")
    if given.toy and not interpreted():
        sys.exit("--toy runs in Triton's interpreter: set TRITON_INTERPRET=1")
    if not given.toy and not torch.cuda.is_available():
        sys.exit("no GPU here; --toy with TRITON_INTERPRET=1 shows that the script runs")
    if not given.toy:
        compile_ahead(given.modules, Deadline(COMPILE_S))
    machine = interpreter() if given.toy else measure(torch.device("cuda"))
    print(f"{machine.gpu}: copy {machine.copy_bytes_per_s / 1e12:.2f} TB/s, ", end="")
    print(f"bf16 matmul {machine.matmul_bf16_per_s / 1e12:.0f} TFLOP/s", flush=True)
    cases = first_those_that_count([case for module in given.modules for case in cases_of(module, given.toy)])
    accelerator = INTERPRETER if given.toy else _accelerator(machine)
    folder = given.out / accelerator if given.out else None
    results, missing = run(cases, machine, deadline, given.toy, folder)
    print(told(list(ratios(machine, results))))
    if missing:
        print(f"{len(missing)} of {len(cases)} cases were not timed")
    if folder:
        paths = write_samples(accelerator, _version(), results, folder)
        print("\n".join(str(path) for path in (folder / "results.json", *paths)))


def run(
    cases: Sequence[Case], machine: Machine, deadline: Deadline, toy: bool, folder: Path | None
) -> tuple[list[Result], list[Missing]]:
    """Time the cases, print each, and keep the results file up to date, lest a crash loses what was measured."""
    results: list[Result] = []
    missing: list[Missing] = []
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    with nullcontext() if toy else ClockReader() as clock:
        time_case = _interpreted_times if toy else _gpu_times
        for found in timed(cases, time_case, (lambda: None) if clock is None else clock.mhz, deadline):
            if isinstance(found, Missing):
                missing.append(found)
                print(f"{found.case}: {found.reason}", flush=True)
            else:
                results.append(found)
                print(f"{found.case}: {_speed(found, toy)}", flush=True)
            if folder:
                write_summary(machine, results, missing, list(ratios(machine, results)), folder / "results.json")
    return results, missing


def _gpu_times(case: Case) -> Times:
    return gpu_times(input_sets(case, torch.device("cuda")))


def _interpreted_times(case: Case) -> Times:
    return host_times([case.prepare(torch.device("cpu"))], repeats=1)


def _speed(result: Result, toy: bool) -> str:
    if toy:
        return f"ran in {result.times.median_s:.2f} s of interpretation"
    return (
        f"{result.times.median_s * 1e6:.1f} us, {result.operations_per_s / 1e12:.0f} TFLOP/s, "
        f"{result.bytes_per_s / 1e12:.2f} TB/s"
    )


def _accelerator(machine: Machine) -> str:
    return ACCELERATORS.get(machine.gpu, machine.gpu.lower().replace(" ", "-"))


def _version() -> str:
    with (Path(__file__).resolve().parents[2] / "pyproject.toml").open("rb") as stream:
        found: str = tomllib.load(stream)["project"]["version"]
    return found


if __name__ == "__main__":
    main()
