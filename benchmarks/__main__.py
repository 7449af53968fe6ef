"""Print how fast the simulator is: ``python -m benchmarks [--quick]``.

Each figure is the median of several runs in this process, on one core, and stands beside the bare loop of
``benchmarks.bare_loop`` on the same requests, run in turn with it, so that the ratio holds on a noisy machine.
"""

import cProfile
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

from benchmarks.bare_loop import simulate as simulate_bare
from servetwin.api import prepare
from simcore.simulation import Simulation

SCENARIOS = Path(__file__).with_name("scenarios")
ROOT = Path(__file__).resolve().parent.parent
REPEATS = 5


def main(quick: bool) -> None:
    print("Requests simulated per second of wall time, one process (summary included, files not)\n")
    print(f"{'scenario':<20}{'servetwin':>12}{'bare loop':>12}{'ratio':>8}")
    for name in ("steady-10k", "near-capacity-10k"):
        _compare(name)
    print("\nWhere the time goes (steady-10k, profiled, so inflated for small functions)\n")
    _profile(prepare(SCENARIOS / "steady-10k.yaml"))
    if not quick:
        print("\nOne million requests, whole process, run folder and report written\n")
        _million()


def _compare(name: str) -> None:
    simulation = prepare(SCENARIOS / f"{name}.yaml")
    workload = simulation.scenario.document()["workload"]
    requests, rate_per_s = workload["requests"], workload["arrivals"]["rate_per_s"]
    lengths = workload["prompt_tokens"]["tokens"], workload["output_tokens"]["tokens"]
    ours, bare = [], []
    for _ in range(REPEATS):
        ours.append(requests / _seconds(simulation.run))
        bare.append(requests / _seconds(lambda: simulate_bare(requests, rate_per_s, *lengths)))
    ratio = median(own / other for own, other in zip(ours, bare, strict=True))
    print(f"{name:<20}{median(ours):>12,.0f}{median(bare):>12,.0f}{ratio:>8.2f}")


def _seconds(call: Callable[[], object]) -> float:
    started = perf_counter()
    call()
    return perf_counter() - started


def _profile(simulation: Simulation) -> None:
    profile = cProfile.Profile()
    profile.runcall(simulation.run)
    spent: Counter[str] = Counter()
    # ``stats`` maps (file, line, function) to (calls, calls, own seconds, cumulated seconds, callers).
    for (file, _, function), figures in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        spent[_place(file, function)] += figures[2]
    total = sum(spent.values())
    for place, seconds in spent.most_common(14):
        print(f"{seconds / total:>7.1%}  {place}")


def _place(file: str, function: str) -> str:
    path = Path(file)
    if path.is_relative_to(ROOT) and ".venv" not in path.parts:
        return str(path.relative_to(ROOT))
    if "simpy" in path.parts:
        return "simpy"
    return "numpy" if "numpy" in path.parts or "numpy" in function else "built-in functions and the rest"


def _million() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "servetwin", "run", str(SCENARIOS / "steady-1m.yaml"), "--quiet"]
        seconds = _seconds(lambda: subprocess.run([*command, "--out", f"{folder}/run"], check=True))
    peak_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"{seconds:.1f} s, peak memory {peak_bytes / 1e9:.2f} GB")


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
