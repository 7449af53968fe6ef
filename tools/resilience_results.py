"""Write ``docs/results/resilience.md``: ``python tools/resilience_results.py [--check]``. It takes two minutes.

With ``--check`` nothing is written, and the exit code is 1 if the document differs from what would be.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from servetwin.api import simulate  # noqa: E402
from tools.publishing import publish  # noqa: E402

Scenario = dict[str, Any]
Summary = dict[str, Any]
BASE: Scenario = {
    "model": "llama-3.1-8b",
    "cluster": {"accelerator": "h100-sxm", "replicas": 8, "routing": "least-requests"},
    "workload": {
        "requests": 3000,
        "arrivals": {"name": "poisson", "rate_per_s": 40.0},
        "prompt_tokens": {"name": "lognormal", "median": 800, "sigma": 0.8, "max": 8000},
        "output_tokens": {"name": "lognormal", "median": 150, "sigma": 0.6, "max": 800},
    },
}
SLOW = {"name": "slow-gpu", "replica": 3, "at_s": 10.0, "for_s": 50.0, "factor": 8.0}
HEDGING = {"hedging": {"name": "percentile-delay", "percent": 95.0}}
EJECTION = {"ejection": {"name": "latency-outlier", "times": 3.0, "window": 10, "eject_s": 10.0}}
GUARDS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "`round-robin`, nothing else": ("round-robin", {}),
    "`round-robin`, hedging": ("round-robin", HEDGING),
    "`round-robin`, ejection": ("round-robin", EJECTION),
    "`round-robin`, both": ("round-robin", HEDGING | EJECTION),
    "`least-requests`, nothing else": ("least-requests", {}),
    "`least-requests`, both": ("least-requests", HEDGING | EJECTION),
}
UPDATES: Mapping[str, Mapping[str, Any] | None] = {
    "none": None,
    "rolling, one out": {"name": "rolling", "most_out": 1},
    "rolling, three out": {"name": "rolling", "most_out": 3},
    "blue-green": {"name": "blue-green"},
}
SLOTS = (2, 8, 32, 128)


def guarded(routing: str, gateway: Mapping[str, Any]) -> Summary:
    """A run in which one of eight replicas is slow for most of the time."""
    cluster = BASE["cluster"] | {"routing": routing}
    return simulate(BASE | {"cluster": cluster, "faults": [SLOW], "gateway": dict(gateway)}).summary


def updated(update: Mapping[str, Any] | None) -> Summary:
    """A run in which seven replicas become like the eighth, at a load that needs most of them."""
    pools = [{"name": "old", "replicas": 7}, {"name": "new", "precision": {"weights": "fp8"}}]
    cluster = {"accelerator": "h100-sxm", "routing": "least-requests", "pools": pools}
    workload = BASE["workload"] | {"requests": 6000, "arrivals": {"name": "poisson", "rate_per_s": 80.0}}
    scenario = BASE | {"cluster": cluster, "workload": workload}
    if update is not None:
        scenario["updates"] = [{"pool": "old", "to": "new", "at_s": 10.0, "load_s": 5.0, **update}]
    return simulate(scenario).summary


def adapted(slots: int | None) -> Summary:
    """A run of one replica with 128 adapters, or without any."""
    workload = BASE["workload"] | {"requests": 1500, "arrivals": {"name": "poisson", "rate_per_s": 8.0}}
    scenario = BASE | {"cluster": BASE["cluster"] | {"replicas": 1}, "workload": workload}
    if slots is not None:
        scenario["adapters"] = {"count": 128, "slots": slots, "rank": 32}
    return simulate(scenario).summary


def _latencies(summary: Summary) -> str:
    ttft_s, e2e_s = summary["metrics"]["ttft_s"], summary["metrics"]["e2e_s"]
    return f"{1e3 * ttft_s['mean']:.1f} | {1e3 * ttft_s['p99']:.0f} | {e2e_s['p99']:.2f}"


def guards_table() -> Iterator[str]:
    """One row per routing policy and guard."""
    yield "| routing and guard | TTFT mean ms | TTFT P99 ms | E2E P99 s | copies sent | won | ejections |"
    yield "|---|" + "---:|" * 6
    for name, (routing, gateway) in GUARDS.items():
        summary = guarded(routing, gateway)
        figures = summary.get("gateway", {})
        hedges = figures.get("hedges")
        copies = "- | -" if hedges is None else f"{hedges['sent']:,} | {hedges['won']:,}"
        ejections = f"{len(figures['ejections'])}" if "ejections" in figures else "-"
        yield f"| {name} | {_latencies(summary)} | {copies} | {ejections} |"


def updates_table() -> Iterator[str]:
    """One row per way to update."""
    yield "| update | TTFT mean ms | TTFT P99 ms | E2E P99 s | took s | replicas beside, s |"
    yield "|---|" + "---:|" * 5
    for name, update in UPDATES.items():
        summary = updated(update)
        told = "- | -"
        if update is not None:
            (figures,) = summary["updates"]
            told = f"{figures['ready_s'] - figures['at_s']:.1f} | {figures['extra_replica_s']:.1f}"
        yield f"| {name} | {_latencies(summary)} | {told} |"


def adapters_table() -> Iterator[str]:
    """One row per number of slots."""
    yield "| slots | TTFT mean ms | TTFT P99 ms | E2E P99 s | TPOT mean ms | loads |"
    yield "|---:|" + "---:|" * 5
    for slots in (None, *SLOTS):
        summary = adapted(slots)
        tpot_ms = 1e3 * summary["metrics"]["tpot_s"]["mean"]
        loads = "-" if slots is None else f"{summary['adapters']['loads']:,}"
        yield f"| {slots or 'no adapters'} | {_latencies(summary)} | {tpot_ms:.2f} | {loads} |"


def document() -> str:
    """The page."""
    parts = [
        "# Resilience",
        "Made by `tools/resilience_results.py`, which compares with `--check`. Llama 3.1 8B on H100, prompts of 800 "
        "and outputs of 150 tokens in the median. One seed; differences of a few percent mean nothing.",
        "## One slow replica of eight",
        "From 10 to 60 s, of 75 s of arrivals at 40 requests/s, one replica takes eight times as long for each step. "
        "Hedging waits for the 95th percentile of the last 200 TTFT. Ejection compares each replica's last ten TTFT "
        "with those of the others, and leaves it out for ten seconds.",
        guards_table,
        "A guard that looks at TTFT does nothing for tokens: who is with the slow replica when it becomes slow stays "
        "there. That is most of E2E P99.",
        "## Updating seven replicas of eight",
        "At 80 requests/s, from 10 s on, to FP8 weights; a new replica takes five seconds to start.",
        updates_table,
        "## Slots for 128 adapters",
        "One replica at 8 requests/s, adapters of rank 32 on all linear layers, drawn by Zipf's law.",
        adapters_table,
        "With few slots requests wait for one, and loads hold up what runs. Reading adapters makes a step a tenth "
        "longer.",
    ]
    lines: list[str] = []
    for part in parts:
        lines += [*part(), ""] if callable(part) else [part if part.startswith("#") else fill(part, 120), ""]
    return "\n".join(lines[:-1]) + "\n"


def main(check: bool) -> int:
    """Write the document, or compare; returns the exit code."""
    return publish(lambda folder: _write(folder / "resilience.md"), check)


def _write(path: Path) -> None:
    path.write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
