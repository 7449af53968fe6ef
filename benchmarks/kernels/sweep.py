"""Choose launch configurations: ``python -m benchmarks.kernels.sweep [MODULE[:NUMBER,...]...] [--out FILE]``, on a GPU.

Every candidate is compiled first, in many processes at once, then timed alone; a candidate whose result differs from
the first one's is marked. What is found goes into the kernels' own configuration functions by hand, and as a Parquet
file into ``benchmarks/kernels/results``, where a test holds the former against it.
"""

import argparse
import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.kernels import MODULES, sweeps_of
from benchmarks.kernels.measured import DIFFERS, Candidate, told_config, write_candidates
from benchmarks.kernels.timing import gpu_times
from kernels.launch import LaunchConfig

_DIFFERENCE = 2e-2
_BEST = 6
_LONGEST_S = 240
"""Of one module's timing; what is not done by then is not told."""


def compile_candidate(place: tuple[str, int, int]) -> None:
    """Launch one candidate once, for the compiler's cache; what fails here fails again where it is told."""
    module, number, candidate = place
    sweep = sweeps_of(module)[number]
    try:
        sweep.prepare(torch.device("cuda"))(sweep.candidates[candidate])()
        torch.cuda.synchronize()
    except Exception as error:
        print(f"{place}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr, flush=True)


def time_module(module: str, numbers: Sequence[int], results: Any) -> None:
    """Time every candidate of these sweeps of a module; in a process of its own, which a fault may end."""
    device = torch.device("cuda")
    for number in numbers:
        sweep = sweeps_of(module)[number]
        launch = sweep.prepare(device)
        first: torch.Tensor | None = None
        for config in sweep.candidates:
            try:
                run = launch(config)
                out = sweep.compared(run())
                first = out.clone() if first is None else first
                median_s = gpu_times([run], repeats=9).median_s
            except Exception as error:
                results.append((number, config, None, f"{type(error).__name__}: {str(error)[:120]}"))
                continue
            results.append((number, config, median_s, _difference(out, first)))


def _difference(out: torch.Tensor, first: torch.Tensor) -> str:
    if torch.equal(out, first):
        return ""
    norm = torch.linalg.vector_norm
    difference = float(norm(out.float() - first.float()) / norm(first.float()))
    return "" if difference < _DIFFERENCE else f"{DIFFERS} by {difference:.2g}"


def report(module: str, number: int, rows: list[tuple[LaunchConfig, float | None, str]]) -> list[Candidate]:
    """Print the best candidates of one sweep, and what failed; return all."""
    case = sweeps_of(module)[number].case
    timed = sorted((row for row in rows if row[1] is not None), key=lambda row: row[1] or 0.0)
    print(f"\n{case.kernel} {case.form} {case.dtype} {dict(case.shape)}: {len(timed)} of {len(rows)} ran")
    for config, median_s, note in timed[:_BEST]:
        assert median_s is not None
        tera, giga = case.operations / median_s / 1e12, case.bytes_moved / median_s / 1e9
        print(f"  {median_s * 1e6:9.1f} us {tera:7.1f} TFLOP/s {giga:7.0f} GB/s  {_told(config)} {note}")
    for config, _, note in [row for row in rows if row[1] is None][:2]:
        print(f"  failed: {_told(config)}: {note}")
    facts = (case.kernel, case.form, case.dtype, case.shape, case.bytes_moved, case.operations)
    return [Candidate(*facts, told_config(config), time_s, note) for config, time_s, note in rows]


def _told(config: LaunchConfig) -> str:
    return " ".join(f"{name}={value}" for name, value in config.arguments().items())


def _chosen(text: str) -> tuple[str, Sequence[int]]:
    """A module and the numbers of its sweeps, all unless told."""
    module, _, numbers = text.partition(":")
    return module, [int(number) for number in numbers.split(",")] if numbers else range(len(sweeps_of(module)))


def main() -> None:
    """Compile, time, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=MODULES)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    processes = multiprocessing.get_context("spawn")
    chosen = dict(_chosen(text) for text in arguments.modules)
    places = [
        (module, number, candidate)
        for module, numbers in chosen.items()
        for number in numbers
        for candidate in range(len(sweeps_of(module)[number].candidates))
    ]
    with processes.Pool(max(1, (os.cpu_count() or 2) - 2)) as pool:
        pool.map(compile_candidate, places, chunksize=1)
    candidates = []
    manager = processes.Manager()
    for module, numbers in chosen.items():
        results = manager.list()
        process = processes.Process(target=time_module, args=(module, numbers, results))
        process.start()
        process.join(_LONGEST_S)
        process.kill()
        process.join()
        found: dict[int, list[tuple[LaunchConfig, float | None, str]]] = {}
        for number, config, median_s, note in results:
            found.setdefault(number, []).append((config, median_s, note))
        for number, rows in found.items():
            candidates += report(module, number, rows)
        if process.exitcode:
            print(f"{module}: ended with exit code {process.exitcode}")
    if arguments.out:
        write_candidates(candidates, arguments.out)


if __name__ == "__main__":
    main()
