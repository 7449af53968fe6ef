"""Print how fast the simulator is: ``python -m benchmarks [--quick] [--write FILE]``.

Machines differ by a factor of two, so the main job stands beside a bare loop (``benchmarks.main_job``). ``--quick``
leaves out the million requests and what single parts take; ``--write`` also writes what is printed, as Markdown.
"""

import argparse
import cProfile
import platform
import pstats
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter

from benchmarks import clusters, kv_memory, main_job, many_replicas, many_tenants, step_prices
from benchmarks.main_job import SCENARIOS
from servetwin.api import prepare
from simcore.build.simulation import Simulation

ROOT = Path(__file__).resolve().parent.parent


def main(quick: bool, write: Path | None) -> None:
    """Measure, print, and write if asked to."""
    lines = [f"Measured on {_processor()}, Python {platform.python_version()}, one process on one core.", ""]
    lines += [
        *main_job.report(),
        "",
        "Where the time goes (steady-10k under a profiler, which inflates small functions):",
        "",
        "| share | where |",
        "|---:|---|",
        *_profile(prepare(SCENARIOS / "steady-10k.yaml")),
    ]
    if not quick:
        for part in (clusters, step_prices, kv_memory, many_tenants, many_replicas):
            lines += ["", *part.report()]
        lines += ["", f"One million requests (steady-1m), whole process, run folder and report written: {_million()}."]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if write is not None:
        write.write_text(f"# Speed\n\nMade by `python -m benchmarks --write {write}`.\n\n{text}", encoding="utf-8")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def _profile(simulation: Simulation) -> list[str]:
    profile = cProfile.Profile()
    profile.runcall(simulation.run)
    spent: Counter[str] = Counter()
    # ``stats`` maps (file, line, function) to (calls, calls, own seconds, cumulated seconds, callers).
    for (file, _, function), figures in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        spent[_place(file, function)] += figures[2]
    total = sum(spent.values())
    return [f"| {seconds / total:.1%} | {place} |" for place, seconds in spent.most_common(14)]


def _place(file: str, function: str) -> str:
    path = Path(file)
    if path.is_relative_to(ROOT) and ".venv" not in path.parts:
        return str(path.relative_to(ROOT))
    if "simpy" in path.parts:
        return "simpy"
    return "numpy" if "numpy" in path.parts or "numpy" in function else "built-in functions and the rest"


def _million() -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "servetwin", "run", str(SCENARIOS / "steady-1m.yaml"), "--quiet"]
        started = perf_counter()
        subprocess.run([*command, "--out", f"{folder}/run"], check=True)
        seconds = perf_counter() - started
    peak_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return f"{seconds:.1f} s, peak memory {peak_bytes / 1e9:.2f} GB"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", type=Path)
    main(**vars(parser.parse_args()))
