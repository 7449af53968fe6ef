"""RadixAttention: prompts find what earlier ones left in the KV cache, and those that find most go first."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.figures.chart import Chart, Series
from papers.harness.simulating import merged, run
from papers.harness.study import Cell, Figures, Measured, Size, Study

FEW_SHOT = {
    "arrivals": {"name": "at-once"},
    "prefix": [
        {
            "name": "few-shot",
            "among": 57,
            "tokens": {"name": "lognormal", "median": 120, "sigma": 0.4, "max": 400},
            "count": {"name": "fixed", "tokens": 5},
        }
    ],
    "prompt_tokens": {"name": "lognormal", "median": 90, "sigma": 0.5, "max": 600},
    "output_tokens": {"name": "fixed", "tokens": 1},
}
TREE_OF_THOUGHT = {
    "arrivals": {"name": "at-once"},
    "prefix": [{"name": "shared", "tokens": {"name": "fixed", "tokens": 300}}],
    "prompt_tokens": {"name": "uniform", "low": 20, "high": 80},
    "output_tokens": {"name": "uniform", "low": 40, "high": 120},
    "session": {"name": "agents", "fan_out": {"name": "fixed", "tokens": 3}, "depth": 3},
}
CHAT = {
    "arrivals": {"name": "closed-loop", "concurrency": 8},
    "prompt_tokens": {"name": "uniform", "low": 256, "high": 512},
    "output_tokens": {"name": "uniform", "low": 4, "high": 8},
    "session": {
        "name": "chat",
        "turns": {"name": "fixed", "tokens": 4},
        "think_time_s": {"name": "fixed", "time_s": 0.5},
    },
}
A10G = {"model": "llama-2-7b", "cluster": {"accelerator": "a10g"}}
TODAY = {"model": "llama-3.1-8b", "engine": "vllm-v1", "workload": FEW_SHOT}
SETUPS: dict[str, dict[str, Any]] = {
    "published": {**A10G, "workload": FEW_SHOT},
    "tree of thought": {**A10G, "workload": TREE_OF_THOUGHT},
    "short chat": {**A10G, "workload": CHAT},
    "H100": {**TODAY, "cluster": {"accelerator": "h100-sxm"}},
    "H100 with little memory": {
        **TODAY,
        "cluster": {"accelerator": "h100-sxm"},
        "memory": {"num_gpu_blocks": 1_000},
    },
    "B200": {**TODAY, "cluster": {"accelerator": "b200"}},
}
RADIX = {"engine": "sglang", "memory": {"prefix_cache": {"index": "radix"}}}
LONGEST_FIRST = {"scheduler": {"ordering": {"name": "longest-prefix", "look_ahead": 4096}}}
SYSTEMS: dict[str, dict[str, Any]] = {
    "no cache": {"engine": "sglang", "memory": {"prefix_caching": False}},
    "radix, FCFS": RADIX,
    "radix": merged(RADIX, LONGEST_FIRST),
    "no bound on memory": merged(RADIX, LONGEST_FIRST, {"cluster": {"accelerator": "b200"}}),
    "vLLM today": {},
    "vLLM today, longest prefix first": LONGEST_FIRST,
}
"""That without a bound has the memory of another accelerator, so nothing but its hit rate counts."""


def measure(cell: Cell) -> Figures:
    """Requests over the time until the last has ended, and the share of prompt tokens found in the cache."""
    document = merged(SETUPS[cell.setup], SYSTEMS[cell.system], {"workload": {"requests": cell.size.requests}})
    result = run(document, cell.seed)
    return {
        "requests_per_s": float((result.requests["state"] == "finished").sum() / result.requests["end_s"].max()),
        "hit_rate": float(result.summary["kv"]["prefix_hit_rate"] or 0.0),
    }


def charts(measured: Measured, curves: Mapping[str, Any]) -> Sequence[Chart]:
    """Throughput over that without a cache, and hit rates."""
    setups = ("published", "tree of thought", "short chat")
    names = ("few-shot", "tree of thought", "short chat")
    ratios = [
        measured.mean(setup, "radix", "requests_per_s") / measured.mean(setup, "no cache", "requests_per_s")
        for setup in setups
    ]
    hits = [
        Series(system, names, [measured.mean(setup, system, "hit_rate") for setup in setups])
        for system in ("radix, FCFS", "radix", "no bound on memory")
    ]
    published = Series("at most", names[:1], [curves["ratio"]], published=True)
    title = "Throughput over no cache"
    return [
        Chart(title, "workload", "ratio", [published, Series("ours", names, ratios)], "bars"),
        Chart("Prompt tokens found", "workload", "share", hits, "bars"),
    ]


STUDY = Study(
    cells={
        "published": ("no cache", "radix, FCFS", "radix", "no bound on memory"),
        "tree of thought": ("no cache", "radix, FCFS", "radix", "no bound on memory"),
        "short chat": ("no cache", "radix, FCFS", "radix", "no bound on memory"),
        **dict.fromkeys(list(SETUPS)[3:], ("vLLM today", "vLLM today, longest prefix first")),
    },
    measure=measure,
    charts=charts,
    full=Size(requests=800, seeds=4),
    smoke=Size(requests=150, seeds=1),
)
