"""Print how fast the simulator is: ``python -m benchmarks [PART ...] [--quick] [--write FILE]``.

Machines differ by a factor of two, so most parts stand beside a bare loop (``benchmarks.main_job``). Without a name all
parts run, which takes some minutes of one core; ``--quick`` runs two. ``--write`` also writes what is printed,
as Markdown; what a file says of other parts stays there.
"""

import argparse
import cProfile
import platform
import pstats
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

from benchmarks import clusters, kv_memory, main_job, many_replicas, many_tenants, step_prices
from benchmarks.main_job import SCENARIOS
from servetwin.api import prepare

ROOT = Path(__file__).resolve().parent.parent
QUICK = ("main-job", "profile")


def main(parts: Sequence[str], quick: bool, write: Path | None) -> None:
    """Measure, print, and write if asked to."""
    unknown = sorted(set(parts) - set(PARTS))
    if unknown:
        sys.exit(f"{unknown[0]!r} is no part, expected some of {', '.join(PARTS)}")
    measured_on = f"Measured on {_processor()}, Python {platform.python_version()}, one process on one core."
    print(measured_on)
    found = {} if write is None or not write.exists() else _sections(write.read_text(encoding="utf-8"))
    for name in parts or (QUICK if quick else PARTS):
        title, report = PARTS[name]
        found[title] = "\n".join(report())
        print(f"\n## {title}\n\n{found[title]}", flush=True)
    if write is not None:
        texts = [f"## {title}\n\n{found[title]}\n" for title, _ in PARTS.values() if title in found]
        made_by = f"Made by `python -m benchmarks --write {write}`. {measured_on}"
        write.write_text("\n".join([f"# Speed\n\n{made_by}\n", *texts]), encoding="utf-8")


def _sections(document: str) -> dict[str, str]:
    """What a document says under each of its headings."""
    pieces = re.split(r"^## (.*)$", document, flags=re.MULTILINE)
    return {title: text.strip() for title, text in zip(pieces[1::2], pieces[2::2], strict=True)}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def _profile() -> list[str]:
    """Lines of Markdown: which modules the main job spends its time in."""
    profile = cProfile.Profile()
    profile.runcall(prepare(SCENARIOS / "steady-10k.yaml").run)
    spent: Counter[str] = Counter()
    # ``stats`` maps (file, line, function) to (calls, calls, own seconds, cumulated seconds, callers).
    for (file, _, function), figures in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        spent[_place(file, function)] += figures[2]
    total = sum(spent.values())
    rows = [f"| {seconds / total:.1%} | {place} |" for place, seconds in spent.most_common(14)]
    return [
        "steady-10k under a profiler, which inflates small functions:",
        "",
        "| share | where |",
        "|---:|---|",
        *rows,
    ]


def _place(file: str, function: str) -> str:
    path = Path(file)
    if path.is_relative_to(ROOT) and ".venv" not in path.parts:
        return str(path.relative_to(ROOT))
    if "simpy" in path.parts:
        return "simpy"
    return "numpy" if "numpy" in path.parts or "numpy" in function else "built-in functions and the rest"


def _million() -> list[str]:
    """A line of Markdown: what a million requests take in all."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "servetwin", "run", str(SCENARIOS / "steady-1m.yaml"), "--quiet"]
        started = perf_counter()
        subprocess.run([*command, "--out", f"{folder}/run"], check=True)
        seconds = perf_counter() - started
    peak_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    took = f"{seconds:.1f} s, peak memory {peak_bytes / 1e9:.2f} GB"
    return [f"steady-1m, whole process, run folder and report written: {took}."]


PARTS: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "main-job": ("The main job", main_job.report),
    "profile": ("Where the time goes", _profile),
    "clusters": ("Clusters", clusters.report),
    "steps": ("Pricing", step_prices.report),
    "memory": ("KV memory", kv_memory.report),
    "tenants": ("Many tenants", many_tenants.report),
    "replicas": ("Many replicas", many_replicas.report),
    "million": ("One million requests", _million),
}
"""By name: under which heading each part stands, and who measures it."""

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", type=Path)
    main(**vars(parser.parse_args()))
