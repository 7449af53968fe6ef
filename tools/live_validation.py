"""Hold the simulator against the live engine on this CPU and write what was found to docs/results/live.md.

``python -m tools.live_validation`` on a quiet machine: SmolLM2-135M and a model of 25 million random parameters, on one
pinned thread, each under four loads with arrivals and lengths of their own. Prices come from a table of steps that is
measured first. ``--toy`` writes nothing and shows that it runs.
"""

import argparse
import json
import os
import platform
import subprocess
from pathlib import Path
from time import monotonic
from typing import Any

from fidelity.live_validation import RegimeCompared
from servetwin.live_options import settings_of
from servetwin.validate_command import Validated, validate_scenario
from simcore.scenario import override, read_scenario

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
NAMES = ("step time, median", "output throughput", "TTFT, median", "TPOT, median")


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toy", action="store_true")
    toy = parser.parse_args().toy
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    began = monotonic()
    found = {name: measured(name, weights, toy) for name, weights in RUNS}
    text = page(found)
    print(text)
    print(f"took {monotonic() - began:.0f} s")
    if not toy:
        DATA.parent.mkdir(parents=True, exist_ok=True)
        DATA.write_text(json.dumps(document(found), indent=1) + "\n")
        PAGE.write_text(text)


def measured(name: str, weights: str | None, toy: bool) -> Validated:
    """The validation of one of the scenarios."""
    path = ROOT / "scenarios" / "live" / f"{name}.yaml"
    smaller = ["workload.requests=4", "workload.output_tokens={name: fixed, tokens: 3}"] if toy else []
    described = override(read_scenario(path), smaller)
    return validate_scenario(described, path.parent, weights, settings_of("cpu", None, 1), 48 if toy else 1024)


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


def document(found: dict[str, Validated]) -> dict[str, Any]:
    """All figures with their provenance."""
    regimes = {name: [regime.document() for regime in validated.regimes] for name, validated in found.items()}
    return {
        "provenance": provenance(),
        "bounds": {" ".join(key): bound for key, bound in BOUNDS.items()},
        "runs": regimes,
    }


def page(found: dict[str, Validated]) -> str:
    """The table of errors as a document."""
    about = ", ".join(f"{name} {value}" for name, value in provenance().items())
    head = "| model | load | plans | " + " | ".join(NAMES) + " |"
    rows = [row(name, regime) for name, validated in found.items() for regime in validated.regimes]
    return "\n".join([
        "# The simulator against the live engine on a CPU",
        "",
        "Made by `make validate-cpu`. Errors are those of the simulation, relative to what was measured. Prices come",
        "from a small table of steps, measured on other requests; arrivals and lengths of each load are its own.",
        "",
        f"Measured with {about}.",
        "",
        head,
        "|" + "---|" * (3 + len(NAMES)),
        *rows,
        "",
        "Bounds: " + ", ".join(f"{name} {bound:.0%}" for name, bound in zip(NAMES, BOUNDS.values(), strict=True))
        + ". Figures beyond them are bold. Plans are all decisions of the live run, replayed by the simulator.",
        "",
    ])  # fmt: skip


def row(name: str, regime: RegimeCompared) -> str:
    """One line of the table."""
    plans = f"{regime.plans:,} equal" if regime.difference is None else f"**{regime.difference}**"
    errors = []
    for key, bound in BOUNDS.items():
        error = regime.error(*key)
        said = "–" if error is None else f"{error:+.1%}"
        errors.append(said if error is not None and abs(error) <= bound else f"**{said}**")
    return f"| {name} | {regime.name} | {plans} | " + " | ".join(errors) + " |"


if __name__ == "__main__":
    main()
