"""Hold the simulator against the live engine on this CPU and write what was found to docs/results/live.md.

``python -m tools.live_validation`` on a quiet machine: SmolLM2-135M and a model of 25 million random parameters, on one
pinned thread, each under four loads with arrivals and lengths of their own. The same live runs are held against prices
of a calibration, made first, and of a small table of measured steps. Waits for arrivals are skipped. ``--toy`` writes
nothing and shows that it runs.
"""

import argparse
import json
import os
import platform
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from fidelity.live_validation import RegimeCompared
from live.measuring.machine import facts
from servetwin.calibration import calibrate_machine
from servetwin.calibration_targets import targets_of
from servetwin.clock_names import ClockName, measuring_clock
from servetwin.live_options import settings_of
from servetwin.validate_command import Validated, validate_scenario
from simcore.scenario import override, read_scenario
from tools.page_template import filled

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results" / "live.md"
DATA = ROOT / "benchmarks" / "results" / "live-cpu.json"
RUNS = (("smollm2-135m", None), ("random-25m", "random"))
BOUNDS = {
    ("step_s", "p50"): 0.05,
    ("output_tokens_per_s", "mean"): 0.03,
    ("ttft_s", "p50"): 0.08,
    ("tpot_s", "p50"): 0.08,
}
"""How far a simulation may be off, relative to what was measured."""
CALIBRATION_S = 90
CLOCKS = {
    ClockName.BUSY: "Steps are timed by the real clock. Waits for arrivals are skipped.",
    ClockName.STEADY: "Times are what the engine's thread computes, at the speed that the machine had at first.",
    ClockName.CPU: "Times are what the engine's thread computes, since the machine did other work.",
}
_CONTEXT_TOKENS = 2048
TEMPLATE = Path(__file__).with_suffix(".md")
NAMES = ("step time, median", "output throughput", "TTFT, median", "TPOT, median")


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true")
    parser.add_argument("--clock", choices=list(CLOCKS), default=ClockName.STEADY)
    arguments = parser.parse_args()
    toy, clock = arguments.toy, ClockName(arguments.clock)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    began = monotonic()
    found = {}
    for name, weights in RUNS:
        with TemporaryDirectory() as folder:
            found[name] = measured(name, weights, toy, clock, Path(folder))
    text = page(found, clock)
    print(text)
    print(f"took {monotonic() - began:.0f} s")
    if not toy:
        DATA.parent.mkdir(parents=True, exist_ok=True)
        DATA.write_text(json.dumps(document(found, clock), indent=1) + "\n")
        PAGE.write_text(text)


def measured(name: str, weights: str | None, toy: bool, clock: ClockName, folder: Path) -> Validated:
    """The calibration, and the validation of one of the scenarios."""
    path = ROOT / "scenarios" / "live" / f"{name}.yaml"
    smaller = ["workload.requests=4", "workload.output_tokens={name: fixed, tokens: 3}"] if toy else []
    described = override(read_scenario(path), smaller)
    settings = settings_of("cpu", None, 1)
    targets = targets_of([str(path)], settings, _CONTEXT_TOKENS)
    seconds = 10 if toy else CALIBRATION_S
    timed_by = measuring_clock(clock, "cpu", folder, keep=True)
    calibrate_machine(folder, targets, settings, facts("cpu", "fp32"), seconds, 0.01, clock=timed_by)
    return validate_scenario(described, path.parent, weights, settings, 48 if toy else 1024, folder, clock)


def provenance() -> dict[str, str]:
    """What was measured on what."""
    import torch

    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "threads": "1, pinned",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "commit": commit.strip(),
    }


def document(found: dict[str, Validated], clock: ClockName) -> dict[str, Any]:
    """All figures with their provenance."""
    regimes = {
        name: {prices: [regime.document() for regime in compared] for prices, compared in both(validated).items()}
        for name, validated in found.items()
    }
    return {
        "provenance": {**provenance(), "clock": str(clock)},
        "bounds": {" ".join(key): bound for key, bound in BOUNDS.items()},
        "runs": regimes,
    }


def both(validated: Validated) -> dict[str, list[RegimeCompared]]:
    """The comparisons by where prices come from."""
    return {"calibration": validated.regimes, "table of steps": validated.by_table}


def page(found: dict[str, Validated], clock: ClockName) -> str:
    """The tables of errors as a document."""
    about = ", ".join(f"{name} {value}" for name, value in provenance().items())
    head = "| model | prices | load | plans | slowness | " + " | ".join(NAMES) + " |"
    rows = [
        row(name, prices, regime)
        for name, validated in found.items()
        for prices, compared in both(validated).items()
        for regime in compared
    ]
    bounds = ", ".join(f"{name} {bound:.0%}" for name, bound in zip(NAMES, BOUNDS.values(), strict=True))
    table = "\n".join([head, "|" + "---|" * (5 + len(NAMES)), *rows])
    return filled(TEMPLATE, about=about, clock=CLOCKS[clock], table=table, bounds=bounds)


def row(name: str, prices: str, regime: RegimeCompared) -> str:
    """One line of the table."""
    plans = f"{regime.plans:,} equal" if regime.difference is None else f"**{regime.difference}**"
    errors = []
    for key, bound in BOUNDS.items():
        error = regime.error(*key)
        said = "–" if error is None else f"{error:+.1%}"
        errors.append(said if error is not None and abs(error) <= bound else f"**{said}**")
    slowness = "–" if regime.slowness is None else f"{regime.slowness:.2f}"
    return f"| {name} | {prices} | {regime.name} | {plans} | {slowness} | " + " | ".join(errors) + " |"


if __name__ == "__main__":
    main()
