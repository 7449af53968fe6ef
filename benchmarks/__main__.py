"""Print how fast the simulator is: ``python -m benchmarks [--quick] [--write FILE]``.

Each figure is the median of several runs in this process, on one core, and stands beside the bare loop of
``benchmarks.bare_loop`` on the same requests, run in turn with it, so that the ratio holds on a noisy machine.
``--quick`` leaves the million requests out; ``--write`` also writes what is printed, as Markdown.
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
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks import kv_memory, many_tenants, step_prices
from benchmarks.bare_loop import simulate as simulate_bare
from servetwin.api import prepare
from simcore.build.simulation import Simulation

SCENARIOS = Path(__file__).with_name("scenarios")
ROOT = Path(__file__).resolve().parent.parent
REPEATS = 5


def main(quick: bool, write: Path | None) -> None:
    """Measure, print, and write if asked to."""
    lines = [f"Measured on {_processor()}, Python {platform.python_version()}, one process on one core.", ""]
    lines += [
        "Requests simulated per second of wall time, summary included, files not; the bare loop is what SimPy alone",
        "needs for the same requests without KV memory, policies, tables or token gaps:",
        "",
        "| scenario | servetwin | bare loop | ratio |",
        "|---|---:|---:|---:|",
        *(_compare(name) for name in ("steady-10k", "near-capacity-10k")),
        "",
        "Where the time goes (steady-10k under a profiler, which inflates small functions):",
        "",
        "| share | where |",
        "|---:|---|",
        *_profile(prepare(SCENARIOS / "steady-10k.yaml")),
        "",
        *step_prices.report(),
        "",
        *kv_memory.report(),
        "",
        *many_tenants.report(),
    ]
    if not quick:
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


def _compare(name: str) -> str:
    simulation = prepare(SCENARIOS / f"{name}.yaml")
    workload = simulation.scenario.document()["workload"]
    requests, rate_per_s = workload["requests"], workload["arrivals"]["rate_per_s"]
    lengths = workload["prompt_tokens"]["tokens"], workload["output_tokens"]["tokens"]
    ours, bare = [], []
    for _ in range(REPEATS):
        ours.append(requests / _seconds(simulation.run))
        bare.append(requests / _seconds(lambda: simulate_bare(requests, rate_per_s, *lengths)))
    ratio = median(own / other for own, other in zip(ours, bare, strict=True))
    return f"| {name} | {median(ours):,.0f} | {median(bare):,.0f} | {ratio:.2f} |"


def _seconds(call: Callable[[], object]) -> float:
    started = perf_counter()
    call()
    return perf_counter() - started


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
        seconds = _seconds(lambda: subprocess.run([*command, "--out", f"{folder}/run"], check=True))
    peak_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    return f"{seconds:.1f} s, peak memory {peak_bytes / 1e9:.2f} GB"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", type=Path)
    main(**vars(parser.parse_args()))
