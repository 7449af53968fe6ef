"""Llumnix: running requests move between instances, against requests that stay where they were sent."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dashboard.figures.chart import Chart, Series
from papers.harness.simulating import merged, poisson, run
from papers.harness.study import Cell, Figures, Measured, Size, Study

MEDIUM = {"min": 8, "p50": 32, "p80": 173, "p95": 1288, "p99": 2000, "max": 2000}
"""The paper's power law of 256 tokens on average, cut so that prompt and output fit the context (from memory)."""
CHAT = {"min": 32, "p50": 300, "p80": 1200, "p95": 4000, "p99": 7000, "max": 8000}
REASONING = {"min": 200, "p50": 2500, "p80": 6000, "p95": 12_000, "p99": 16_000, "max": 20_000}


def _lengths(prompts: Mapping[str, int], outputs: Mapping[str, int]) -> dict[str, Any]:
    return {
        "workload": {
            "prompt_tokens": {"name": "quantiles", "tokens": prompts},
            "output_tokens": {"name": "quantiles", "tokens": outputs},
        },
    }


A10 = merged(
    {
        "model": "llama-2-7b",
        "max_context_tokens": 4096,
        "cluster": {
            "accelerator": "a10g",
            "replicas": 8,
            "routing": "least-tokens",
            "network_gb_per_s": 2.0,
            "network": {"devices_per_node": 4},
        },
        "memory": {"prefix_caching": False},
    },
    _lengths(MEDIUM, MEDIUM),
)
TODAY: dict[str, Any] = {
    "model": "llama-3.1-70b",
    "max_context_tokens": 32_768,
    "cluster": {"replicas": 4, "routing": "least-tokens", "network_gb_per_s": 50.0},
    "memory": {"prefix_caching": False},
}
H100 = merged(TODAY, {"cluster": {"accelerator": "h100-sxm", "tensor_parallel": 4}})
B200 = merged(TODAY, {"cluster": {"accelerator": "b200", "tensor_parallel": 2}})
SETUPS: dict[str, dict[str, Any]] = {
    "published": A10,
    "lower load": A10,
    "links of 0.1 GB/s": merged(A10, {"cluster": {"network_gb_per_s": 0.1, "network": {"devices_per_node": 1}}}),
    "H100": merged(H100, _lengths(CHAT, CHAT)),
    "H100, long outputs": merged(H100, _lengths(CHAT, REASONING)),
    "B200, long outputs": merged(B200, _lengths(CHAT, REASONING)),
}
RATE_PER_S = {"lower load": 9.0, "H100": 26.0, "H100, long outputs": 6.5, "B200, long outputs": 8.5}
MOVES: dict[str, Any] = {
    "interval_s": 0.1,
    "policy": {"name": "virtual-usage", "give_below_steps": 30.0, "take_above_steps": 60.0},
}
TENANTS = [{"name": "urgent", "share": 0.1}, {"name": "others", "share": 0.9, "priority": 1}]
SYSTEMS: dict[str, dict[str, Any]] = {
    "INFaaS++": {},
    "Llumnix": {"cluster": {"migration": MOVES}},
    "round robin": {"cluster": {"routing": "round-robin"}},
    "round robin, moving": {"cluster": {"routing": "round-robin", "migration": MOVES}},
    "Llumnix with priorities": {
        "cluster": {
            "migration": merged(MOVES, {"policy": {**MOVES["policy"], "headroom_tokens": {0: 3000}}}),
        },
        "scheduler": {"ordering": "priority"},
    },
}


def measure(cell: Cell) -> Figures:
    """Tails of the first token and of the mean time per token, and what moved."""
    rate_per_s = RATE_PER_S.get(cell.setup, 13.0)
    requests = cell.size.requests // (2 if "long outputs" in cell.setup else 1)
    workload = {**poisson(requests, rate_per_s), "tenants": TENANTS}
    result = run(merged(SETUPS[cell.setup], SYSTEMS[cell.system], {"workload": workload}), cell.seed)
    metrics, migration = result.summary["metrics"], result.summary.get("migration")
    urgent = result.requests["tenant"] == "urgent"
    return {
        "ttft_p99_s": metrics["ttft_s"]["p99"],
        "ttft_mean_s": metrics["ttft_s"]["mean"],
        "tpot_p99_s": metrics["tpot_s"]["p99"],
        "urgent_e2e_s": float(np.nanmean(result.requests["e2e_s"][urgent])),
        "preemptions": float(result.summary["preemptions"]["total"]),
        "moves": 0.0 if migration is None else float(migration["moves"]),
        "stop_p99_ms": 0.0 if migration is None else 1e3 * (migration["stop_s"]["p99"] or 0.0),
    }


def charts(measured: Measured, curves: Mapping[str, Any]) -> Sequence[Chart]:
    """The tail of the first token by system, and the ratios that were published."""
    systems = ("round robin", "INFaaS++", "Llumnix")
    tails = [measured.mean("published", system, "ttft_p99_s") for system in systems]
    ratios = [
        measured.mean("published", "INFaaS++", figure) / measured.mean("published", "Llumnix", figure)
        for figure in ("ttft_p99_s", "tpot_p99_s")
    ]
    names = list(curves["ratio"])
    published = Series("at most", names, list(curves["ratio"].values()), published=True)
    return [
        Chart("P99 of the first token", "system", "s", [Series("8 A10G", systems, tails)], "bars"),
        Chart("INFaaS++ over Llumnix", "figure", "ratio", [published, Series("ours", names, ratios)], "bars"),
    ]


STUDY = Study(
    cells={
        "published": tuple(SYSTEMS),
        "lower load": ("INFaaS++", "Llumnix"),
        "links of 0.1 GB/s": ("INFaaS++", "Llumnix"),
        "H100": ("INFaaS++", "Llumnix"),
        "H100, long outputs": ("INFaaS++", "Llumnix"),
        "B200, long outputs": ("INFaaS++", "Llumnix"),
    },
    measure=measure,
    charts=charts,
    full=Size(requests=2000, seeds=4),
    smoke=Size(requests=2000, seeds=1),
)
