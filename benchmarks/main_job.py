"""The main job as a multiple of the bare loop: an 8B model on one H100 that 10 requests per second come to.

Seconds of CPU, servetwin and loop in turn, so that the ratio of each pair holds on a noisy machine; the median of all
pairs is told. More than one is slower than the loop, of which servetwin reaches the inverse.
"""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

from benchmarks.bare_loop import Load, simulate
from servetwin.api import prepare
from simcore.build.simulation import Simulation

SCENARIOS = Path(__file__).with_name("scenarios")
ROOT = Path(__file__).resolve().parent.parent
REPEATS = 5
REPLICAS = 64


def report() -> list[str]:
    """Lines of Markdown: what share of the speed of a bare loop servetwin has, and how that depends on replicas."""
    lines = [
        "Seconds of CPU for 10,000 requests. The bare loop is SimPy alone with one event per step, without KV memory,",
        "policies, tables or gaps between tokens (`benchmarks/bare_loop.py`); with jumps it skips over like steps, as",
        "servetwin does. In brackets the speed of servetwin as a multiple of that of the loop:",
        "",
        "| what | servetwin | bare loop | bare loop with jumps |",
        "|---|---:|---:|---:|",
    ]
    for name in ("steady-10k", "near-capacity-10k"):
        lines.append(_row(f"{name}, the run", *_runs(name)))
    lines.append(_row("steady-10k, the whole command", *_commands("steady-10k"), []))
    return [*lines, "", *_replicas()]


def _row(what: str, ours: list[float], bare: list[float], jumping: list[float]) -> str:
    cells = [what, f"{median(ours):.2f}"]
    for loop in (bare, jumping):
        ratio = median([other / own for own, other in zip(ours, loop, strict=True)]) if loop else 0.0
        cells.append(f"{median(loop):.2f} ({ratio:.2f})" if loop else "")
    return f"| {' | '.join(cells)} |"


def _runs(name: str) -> tuple[list[float], list[float], list[float]]:
    """Seconds of each run of a scenario, and of the loops beside it; the first of each warms up."""
    simulation = prepare(SCENARIOS / f"{name}.yaml")
    load = Load.of(simulation.scenario.document())
    calls: tuple[Callable[[], object], ...] = (
        simulation.run,
        lambda: simulate(load),
        lambda: simulate(load, jumps=True),
    )
    rounds = [[_seconds(call) for call in calls] for _ in range(REPEATS + 1)][1:]
    ours, bare, jumping = (list(column) for column in zip(*rounds, strict=True))
    return ours, bare, jumping


def _seconds(call: Callable[[], object]) -> float:
    started = process_time()
    call()
    return process_time() - started


def _commands(name: str) -> tuple[list[float], list[float]]:
    """Seconds of whole commands: imports, the run, its folder and its report; and of the loop as a command."""
    scenario = str(SCENARIOS / f"{name}.yaml")
    ours, bare = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(REPEATS + 1):
            ours.append(_command_s("servetwin", "run", scenario, "--quiet", "--out", f"{folder}/{number}"))
            bare.append(_command_s("benchmarks.bare_loop", scenario))
    return ours[1:], bare[1:]


def _command_s(module: str, *arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _replicas() -> list[str]:
    """One replica and many at equal load per replica, in turn, requests in all the same."""
    one, many = (_replicated(replicas) for replicas in (1, REPLICAS))
    pairs = [(_seconds(one.run), _seconds(many.run)) for _ in range(3)]
    requests = one.scenario.document()["workload"]["requests"]
    ratio = median(few / more for few, more in pairs)
    alone, together = (1e6 * median(column) / requests for column in zip(*pairs, strict=True))
    return [
        f"{REPLICAS} replicas at the load per replica of steady-10k: {together:.0f} µs of CPU per request, one replica",
        f"{alone:.0f} µs. Requests per second are {ratio:.2f} times as many.",
    ]


def _replicated(replicas: int) -> Simulation:
    document = prepare(SCENARIOS / "steady-10k.yaml").scenario.document()
    document["cluster"]["replicas"] = replicas
    document["workload"]["arrivals"]["rate_per_s"] *= replicas
    document["workload"]["requests"] = 20_000
    return prepare(document)
