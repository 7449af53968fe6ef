"""Write ``docs/results/scaling.md``: ``python tools/scaling_results.py [--check]``. It takes some ten minutes.

With ``--check`` nothing is written, and the exit code is 1 if the document differs from what would be.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from servetwin.api import simulate  # noqa: E402
from simcore.core.result import Columns, Result  # noqa: E402
from tools.publishing import publish  # noqa: E402

REQUESTS_A_DAY = 200_000
SHAPE = (5, 4, 3, 3, 3, 4, 6, 9, 13, 16, 18, 18, 16, 17, 18, 18, 17, 15, 13, 11, 10, 9, 8, 6)
"""Requests by hour of a day, in proportion: a service that people use at work. Own round numbers."""
SERVED_PER_S = 0.65
"""Requests per second that a replica is planned for; at 0.6 a single L4 keeps both limits, at 0.8 it does not."""
START = {"boot_s": 60, "read_gb_per_s": 1, "compile_s": 30, "warm_up_s": 5}
SCALING = {"min_replicas": 1, "max_replicas": 12, "interval_s": 30, "in_wait_s": 600, "start": START}
FLEETS: Mapping[str, dict[str, Any]] = {
    "fixed, for the peak": {"replicas": 6},
    "fixed, for the mean": {"replicas": 4},
    "`forecast`": {
        "replicas": 3,
        "scaling": SCALING
        | {
            "policy": {
                "name": "forecast",
                "requests_per_s": SERVED_PER_S,
                "level": 0.3,
                "trend": 0.1,
                "deviations": 0.25,
            }
        },
    },
    "`queue`": {"replicas": 3, "scaling": SCALING | {"policy": {"name": "queue", "requests_per_replica": 9}}},
}


def scenario(fleet: Mapping[str, Any], requests: int = REQUESTS_A_DAY) -> dict[str, Any]:
    """A day of requests of the lengths of Azure's conversations, on some replicas."""
    rates_per_s = [round(requests * share / sum(SHAPE) / 3600, 6) for share in SHAPE]
    return {
        "model": "llama-3.1-8b",
        "cluster": {"accelerator": "l4", "routing": "least-requests", **fleet},
        "workload": {
            "duration_s": 86400,
            "arrivals": {"name": "daily", "rates_per_s": rates_per_s},
            "prompt_tokens": {"name": "lognormal", "median": 1020, "sigma": 0.5, "max": 8000},
            "output_tokens": {"name": "lognormal", "median": 129, "sigma": 0.99, "max": 1000},
        },
        "slo": {"ttft_s": {"p99": 2.0}, "tpot_s": {"p99": 0.12}},
    }


def table(summaries: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """One row per fleet."""
    titles = ("replicas", "USD a day", "in limits %", "budget spent", "red %", "TTFT P99 s", "TPOT P99 ms")
    yield f"| fleet | {' | '.join((*titles, 'USD per M tokens', 'USD per 1,000 good'))} |"
    yield "|---|" + "---:|" * (len(titles) + 2)
    for name, summary in summaries.items():
        service, cost, metrics = summary["service"], summary["cost"], summary["metrics"]
        cells = [
            f"{service['mean_replicas']:.2f}",
            f"{cost['usd']:.2f}",
            f"{100 * summary['throughput']['slo_attainment']:.2f}",
            f"{service['error_budget_spent']:.2f}",
            f"{100 * service['regime_shares']['red']:.0f}",
            f"{metrics['ttft_s']['p99']:.2f}",
            f"{1e3 * metrics['tpot_s']['p99']:.0f}",
            f"{cost['usd_per_million_output_tokens']:.2f}",
            f"{1e3 * cost['usd_per_good_request']:.3f}",
        ]
        yield f"| {name} | {' | '.join(cells)} |"


def by_hour(result: Result) -> Iterator[str]:
    """What the replicas of a fleet did in every second hour."""
    yield "| hour | requests/s | replicas | in limits % |"
    yield "|---:|---:|---:|---:|"
    for hour in range(0, 24, 2):
        start_s, end_s = 3600.0 * hour, 3600.0 * (hour + 2)
        arrival_s = result.requests["arrival_s"]
        arrived = (arrival_s >= start_s) & (arrival_s < end_s)
        replicas = serving_s(result.fleet, start_s, end_s) / (end_s - start_s)
        good = _good(result.requests)[arrived]
        yield f"| {hour} | {arrived.sum() / (end_s - start_s):.2f} | {replicas:.2f} | {100 * good.mean():.2f} |"


def serving_s(fleet: Columns, start_s: float, end_s: float) -> float:
    """Replica-seconds that served between two times."""
    serving = fleet["phase"] == "serving"
    spans = np.minimum(fleet["end_s"], end_s) - np.maximum(fleet["start_s"], start_s)
    return float(np.clip(spans[serving], 0.0, None).sum())


def _good(requests: Columns) -> Any:
    return ~((requests["ttft_s"] > 2.0) | (requests["tpot_s"] > 0.12) | (requests["state"] != "finished"))


def document() -> str:
    """The page."""
    results = {name: simulate(scenario(fleet)) for name, fleet in FLEETS.items()}
    summaries = {name: result.summary for name, result in results.items()}
    peak, forecast = (summaries[name]["cost"]["usd"] for name in ("fixed, for the peak", "`forecast`"))
    arrived = summaries["`forecast`"]["counts"]["arrived"]
    starts = summaries["`forecast`"]["scaling"]
    text = (
        f"Made by `tools/scaling_results.py`, which compares with `--check`. A day of {arrived:,} requests for "
        "llama-3.1-8b on L4s, priced by list price for each second of an instance. Lengths are lognormal with the "
        "medians and means of Azure's conversation trace (Patel et al., ISCA 2024); the shape of the day is ours. "
        "Objectives are P99 TTFT of 2 s and P99 TPOT of 120 ms. A start takes a minute to boot, 16 GB of weights at "
        "1 GB/s, and 35 s to compile and warm up. Decisions are made every 30 s; a replica goes when it was not wanted "
        "for ten minutes. One seed. The rate changes by the hour, at once, which no forecast sees coming."
    )
    said = (
        f"`forecast` costs {100 * (1 - forecast / peak):.0f}% less than the fleet for the peak. It made "
        f"{starts['starts']:,} cold starts, of {starts['start_s']['mean']:.0f} s on average. At the peak it has more "
        "replicas than that fleet: it adds a margin for bursts, and keeps the most that was wanted in ten minutes."
    )
    parts = ["# Scaling", "", fill(text, width=120), "", *table(summaries), "", fill(said, width=120), ""]
    parts += ["By the hour under `forecast`:", "", *by_hour(results["`forecast`"])]
    return "\n".join(parts) + "\n"


def main(check: bool) -> int:
    """Write the document, or compare; returns the exit code."""
    return publish(lambda folder: _write(folder / "scaling.md"), check)


def _write(path: Path) -> None:
    path.write_text(document(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
