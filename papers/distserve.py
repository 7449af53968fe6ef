"""DistServe: prompts and decodes on GPUs of their own, against both on the same."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dashboard.figures.chart import Chart, Series
from papers.harness.simulating import merged, poisson, run, sustained_rate
from papers.harness.study import Cell, Figures, Measured, Size, Study

HOST_THEN = {"async_scheduling": False, "max_cudagraph_tokens": 1, "mixed_graphs": False, "compiled": False}
WHOLE_PROMPTS = {"scheduler": {"batching": {"name": "prefill-first", "max_batched_tokens": 2048}}, "host": HOST_THEN}
CHAT = {
    "prompt_tokens": {"name": "lognormal", "median": 500, "sigma": 1.0, "max": 1700},
    "output_tokens": {"name": "lognormal", "median": 140, "sigma": 0.9, "max": 348},
}
DOCUMENTS = {
    "prompt_tokens": {"name": "lognormal", "median": 1740, "sigma": 0.1, "max": 1900},
    "output_tokens": {"name": "lognormal", "median": 80, "sigma": 0.5, "max": 148},
}
SMALL = merged(WHOLE_PROMPTS, {"model": "opt-13b", "cluster": {"accelerator": "a100-sxm-80gb"}, "workload": CHAT})
LARGE = merged(SMALL, {"model": "opt-66b", "cluster": {"tensor_parallel": 4}})
TODAY = {"model": "llama-3.1-70b", "cluster": {"tensor_parallel": 4}, "workload": CHAT}
SETUPS: dict[str, dict[str, Any]] = {
    "published": merged(LARGE, {"workload": DOCUMENTS}),
    "ShareGPT": LARGE,
    "OPT-13B, ShareGPT": SMALL,
    "limit on TPOT of 70 ms": LARGE,
    "H100": merged(TODAY, {"cluster": {"accelerator": "h100-sxm"}}),
    "B200": merged(TODAY, {"cluster": {"accelerator": "b200"}}),
}
LIMITS_S = {
    "published": (15.0, 0.15),
    "ShareGPT": (0.4, 0.1),
    "OPT-13B, ShareGPT": (0.25, 0.1),
    "limit on TPOT of 70 ms": (0.4, 0.07),
    "H100": (0.4, 0.025),
    "B200": (0.4, 0.025),
}
"""Of TTFT and of TPOT, both to be kept by nine of ten requests."""
MISSED_SHARE = 0.1
PREFILL_REPLICAS = {"OPT-13B, ShareGPT": 2}
"""One elsewhere, and one that decodes."""
VARIANTS: dict[str, dict[str, Any]] = {
    "vLLM": {},
    "vLLM, slower host": {"host": {"step_s": 0.02}},
    "vLLM, chunks of 512": {"scheduler": {"batching": {"name": "chunked-prefill", "max_batched_tokens": 512}}},
}


def _document(setup: str, system: str) -> tuple[dict[str, Any], int]:
    """The scenario, and on how many GPUs it runs."""
    base = merged(SETUPS[setup], {"memory": {"prefix_caching": False}})
    ranks = base["cluster"].get("tensor_parallel", 1)
    if system != "DistServe":
        return merged(base, VARIANTS[system]), ranks
    prefilling = PREFILL_REPLICAS.get(setup, 1)
    pools = [
        {"name": "prefill", "role": "prefill", "replicas": prefilling},
        {"name": "decode", "role": "decode", "replicas": 1},
    ]
    apart = {"cluster": {"pools": pools, "handover": {"transfer": "layers"}}}
    return merged(base, apart), ranks * (prefilling + 1)


def measure(cell: Cell) -> Figures:
    """Requests per second and GPU of which nine in ten keep both limits."""
    document, gpus = _document(cell.setup, cell.system)
    ttft_s, tpot_s = LIMITS_S[cell.setup]

    def excess(rate_per_s: float) -> float:
        requests = run(merged(document, {"workload": poisson(cell.size.requests, rate_per_s)}), cell.seed).requests
        in_time = (requests["ttft_s"] <= ttft_s) & ~(requests["tpot_s"] > tpot_s)
        kept = (requests["state"] == "finished") & in_time
        return float((1 - np.mean(kept)) / MISSED_SHARE)

    return {"goodput_per_gpu": sustained_rate(excess, 0.5 * gpus, cell.size.precision) / gpus}


def charts(measured: Measured, curves: Mapping[str, Any]) -> Sequence[Chart]:
    """Goodput of each GPU by workload."""
    setups = ("OPT-13B, ShareGPT", "ShareGPT", "published")
    names = ("OPT-13B, ShareGPT", "OPT-66B, ShareGPT", "OPT-66B, LongBench")
    bars = [
        Series(system, names, [measured.mean(setup, system, "goodput_per_gpu") for setup in setups])
        for system in ("vLLM", "DistServe")
    ]
    ratios = [
        measured.mean(setup, "DistServe", "goodput_per_gpu") / measured.mean(setup, "vLLM", "goodput_per_gpu")
        for setup in setups
    ]
    published = Series("ratio", list(curves["ratio"]), list(curves["ratio"].values()), published=True)
    return [
        Chart("Goodput", "workload", "requests per second and GPU", bars, "bars"),
        Chart(
            "Goodput of DistServe over vLLM", "workload", "ratio", [published, Series("ours", names, ratios)], "bars"
        ),
    ]


STUDY = Study(
    cells={
        "published": ("vLLM", "vLLM, slower host", "DistServe"),
        "ShareGPT": ("vLLM", "vLLM, slower host", "DistServe"),
        "OPT-13B, ShareGPT": ("vLLM", "DistServe"),
        "limit on TPOT of 70 ms": ("vLLM", "DistServe"),
        "H100": ("vLLM", "vLLM, chunks of 512", "DistServe"),
        "B200": ("vLLM", "vLLM, chunks of 512", "DistServe"),
    },
    measure=measure,
    charts=charts,
    full=Size(requests=300, seeds=4, precision=1.12),
    smoke=Size(requests=100, seeds=1, precision=1.5),
)
