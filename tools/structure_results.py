"""Make docs/results/structure.md: how the project is built and how fast it is, before and after it was put in layers.

``python -m tools.structure_results`` measures this checkout, and its compiled form where ``build/compiled`` is there.
What another checkout measures is written by ``--before CHECKOUT COMMIT`` to ``structure_before.json``, once; the
files that an addition touched there were counted by hand. The time of all tests is that of a report of pytest's,
``--tests REPORT`` (``pytest --junitxml REPORT``).
"""

import argparse
import ast
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from servetwin.doctor_command import OWN_PACKAGES

ROOT = Path(__file__).resolve().parent.parent
BEFORE = Path(__file__).with_name("structure_before.json")
DOCUMENT = ROOT / "docs" / "results" / "structure.md"
COMPILED = ROOT / "build" / "compiled"
_REPEATS = 3
_MAIN_JOB = """
import importlib.util, json, sys
from time import process_time
from servetwin.api import prepare

found = importlib.util.spec_from_file_location("bare_loop", sys.argv[1] + "/bare_loop.py")
loop = importlib.util.module_from_spec(found)
sys.modules["bare_loop"] = loop
found.loader.exec_module(loop)
simulation = prepare(sys.argv[1] + "/scenarios/steady-10k.yaml")
load = loop.Load.of(simulation.scenario.document())
pairs = []
for _ in range(int(sys.argv[2]) + 1):
    times = [process_time()]
    for call in (simulation.run, lambda: loop.simulate(load)):
        call()
        times.append(process_time())
    pairs.append((times[1] - times[0], times[2] - times[1]))
print(json.dumps(pairs[1:]))
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """What was found of one checkout; times are seconds of CPU, None where nobody measured."""

    packages: int
    packages_in_cycles: int
    longest_function_lines: int
    touches: dict[str, str]
    tests_minutes: float | None
    help_s: float
    small_run_s: float
    main_job_run: float
    main_job_command: float


def measure(checkout: Path, tests: Path | None) -> Measured:
    """Look at the sources of a checkout, and time its commands."""
    imports = package_imports(checkout / "simcore")
    small = str(checkout / "scenarios" / "quickstart.yaml")
    with tempfile.TemporaryDirectory() as folder:
        run = ("-m", "servetwin", "run", "--quiet", "--out", f"{folder}/run")
        helps_s = _cpu_s(checkout, "-m", "servetwin", "--help")
        small_s = _cpu_s(checkout, *run, small)
        ours_s, loops_s = [], []
        steady = str(ROOT / "benchmarks" / "scenarios" / "steady-10k.yaml")
        for _ in range(_REPEATS):
            ours_s.append(_cpu_s(checkout, *run, steady, repeats=1))
            loops_s.append(_cpu_s(ROOT, "-m", "benchmarks.bare_loop", steady, repeats=1))
    command = median(loop / own for own, loop in zip(ours_s, loops_s, strict=True))
    minutes = None if tests is None else test_minutes(tests)
    return Measured(
        len(imports),
        len(in_cycles(imports)),
        max(lines for package in OWN_PACKAGES for lines in function_lines(checkout / package)),
        touches((checkout / "CONTRIBUTING.md").read_text(encoding="utf-8")),
        minutes,
        helps_s,
        small_s,
        main_job(checkout),
        command,
    )


def package_imports(root: Path) -> dict[str, set[str]]:
    """Which packages and modules right below ``root`` import which, those for type checkers alone included."""
    parts = {path.stem for path in root.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    found: dict[str, set[str]] = {part: set() for part in parts - {"__init__"}}
    for file in root.rglob("*.py"):
        own = file.relative_to(root).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.ImportFrom) and node.module == root.name:
                names = [f"{root.name}.{alias.name}" for alias in node.names]
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            for name in names:
                first, _, rest = name.partition(".")
                other = rest.partition(".")[0]
                if own in found and first == root.name and other in found and other != own:
                    found[own].add(other)
    return found


def in_cycles(imports: Mapping[str, set[str]]) -> set[str]:
    """Those from which imports lead back to themselves."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = [*imports[start]]
        while ahead:
            name = ahead.pop()
            if name not in seen:
                seen.add(name)
                ahead += imports[name]
        return seen

    return {name for name in imports if name in reached(name)}


def function_lines(root: Path) -> Iterator[int]:
    """The lines of every function below a folder."""
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield (node.end_lineno or node.lineno) - node.lineno + 1


def touches(contributing: str) -> dict[str, str]:
    """Files that each addition touches, as CONTRIBUTING.md says and its test holds."""
    rows = re.findall(r"^\| ([\w ]+) \| \[?(\d+)", contributing, flags=re.MULTILINE)
    return dict(rows)


def test_minutes(report: Path) -> float:
    """How long all tests of a JUnit report took, one after the other."""
    suites = ElementTree.parse(report).getroot().iter("testcase")
    return sum(float(case.get("time", 0)) for case in suites) / 60


def main_job(checkout: Path) -> float:
    """The speed of the main job's run as a multiple of the bare loop of this checkout, in one process."""
    command = [sys.executable, "-c", _MAIN_JOB, str(ROOT / "benchmarks"), str(_REPEATS)]
    done = subprocess.run(command, cwd=checkout, env=_environment(checkout), capture_output=True, text=True, check=True)
    ratios: list[float] = [loop / own for own, loop in json.loads(done.stdout)]
    return median(ratios)


def _cpu_s(checkout: Path, *arguments: str, repeats: int = _REPEATS) -> float:
    seconds = []
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, *arguments]
        subprocess.run(command, cwd=checkout, env=_environment(checkout), stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return median(seconds)


def _environment(checkout: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(checkout)}


def document(before: Mapping[str, Any], after: Measured, compiled: float | None) -> str:
    """The page."""
    additions = [name for name in before["touches"] if name in after.touches]
    rows = [
        (f"packages of `simcore` in an import cycle, of {before['packages']} and {after.packages}",
         before["packages_in_cycles"], after.packages_in_cycles),
        *((f"files touched to add: {name}", before["touches"][name], after.touches[name]) for name in additions),
        ("longest function, lines", before["longest_function_lines"], after.longest_function_lines),
        ("all tests one after the other, minutes", _shown(before["tests_minutes"], 0), _shown(after.tests_minutes, 0)),
        ("`servetwin --help`, s of CPU", _shown(before["help_s"], 2), _shown(after.help_s, 2)),
        ("`servetwin run` of 5,000 requests, s of CPU", _shown(before["small_run_s"], 1), _shown(after.small_run_s, 1)),
        ("main job against the bare loop: the run", _shown(before["main_job_run"], 2), _shown(after.main_job_run, 2)),
        ("main job against the bare loop: the whole command",
         _shown(before["main_job_command"], 2), _shown(after.main_job_command, 2)),
        ("main job against the bare loop: the run, compiled", "", _shown(compiled, 2)),
    ]  # fmt: skip
    return "\n".join(
        (
            "# Structure and speed",
            "",
            "Made by `python -m tools.structure_results`.",
            "",
            f"Before is commit `{before['commit']}`, measured by the same script. Times are medians of {_REPEATS}",
            "runs. The main job is `benchmarks/scenarios/steady-10k.yaml`, the loop `benchmarks/bare_loop.py`.",
            "Both are timed in turn, and 1 is as fast as the loop. [Speed](speed.md) has more.",
            "",
            "| what | before | after |",
            "|---|---:|---:|",
            *(f"| {what} | {then} | {now} |" for what, then, now in rows),
            "",
        )
    )


def _shown(figure: float | None, digits: int) -> str:
    return "not measured" if figure is None else f"{figure:.{digits}f}"


def main() -> None:
    """Measure, and write what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", nargs=2, metavar=("CHECKOUT", "COMMIT"))
    parser.add_argument("--tests", type=Path, metavar="REPORT")
    given = parser.parse_args()
    if given.before:
        checkout, commit = given.before
        found = {"commit": commit, **asdict(measure(Path(checkout).resolve(), given.tests))}
        if BEFORE.exists():
            found["touches"] = json.loads(BEFORE.read_text(encoding="utf-8"))["touches"]
        BEFORE.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        return
    before = json.loads(BEFORE.read_text(encoding="utf-8"))
    compiled = main_job(COMPILED) if COMPILED.is_dir() else None
    DOCUMENT.write_text(document(before, measure(ROOT, given.tests), compiled), encoding="utf-8")


if __name__ == "__main__":
    main()
