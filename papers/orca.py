"""Orca: batches that form anew in every iteration, against batches that wait for their longest request."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dashboard.figures.chart import Chart, Series
from papers.harness.simulating import merged, normalised_latency_s, poisson, run, sustained_rate
from papers.harness.study import Cell, Figures, Measured, Size, Study

WORKLOAD = {
    "prompt_tokens": {"name": "uniform", "low": 32, "high": 512},
    "output_tokens": {"name": "uniform", "low": 1, "high": 128},
    "max_output_tokens": 128,
}
BASE: dict[str, Any] = {"model": "opt-175b", "max_context_tokens": 2048, "workload": WORKLOAD}
PUBLISHED_CLUSTER = {"accelerator": "a100-sxm-40gb", "tensor_parallel": 8, "pipeline_parallel": 2}
CLUSTERS = {
    "published": PUBLISHED_CLUSTER,
    "limit relative to an idle server": PUBLISHED_CLUSTER,
    "8 H100": {"accelerator": "h100-sxm", "tensor_parallel": 8},
    "8 B200": {"accelerator": "b200", "tensor_parallel": 8},
}
LIMIT_S = {"published": 0.190}
TIMES_IDLE = 2.0
"""Where no limit is stated: so many times the latency per token of a server that has nothing else to do."""
CURVE_PER_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def _static(requests: int) -> dict[str, Any]:
    return {"engine": "orca", "scheduler": {"batching": {"name": "static", "max_running_requests": requests}}}


SYSTEMS: dict[str, dict[str, Any]] = {
    "FasterTransformer": _static(8),
    "FasterTransformer, one at a time": _static(1),
    "Orca": {"engine": "orca"},
    "vLLM": {"engine": "vllm-v1"},
}


def measure(cell: Cell) -> Figures:
    """The rate that keeps the median latency per output token within the limit, and that latency at some rates."""
    base = merged(BASE, {"cluster": CLUSTERS[cell.setup]}, SYSTEMS[cell.system])

    def median_s(rate_per_s: float, requests: int = cell.size.requests) -> float:
        result = run(merged(base, {"workload": poisson(requests, rate_per_s)}), cell.seed)
        return float(np.median(normalised_latency_s(result)[requests // 2 :]))  # by then a queue has grown, if it does

    limit_s = LIMIT_S[cell.setup] if cell.setup in LIMIT_S else TIMES_IDLE * median_s(1e-3, 40)
    figures = {"rate_per_s": sustained_rate(lambda rate: median_s(rate) / limit_s, 1.0, cell.size.precision)}
    if cell.setup == "published" and cell.seed == 0 and cell.size == STUDY.full:
        figures |= {f"median_s at {rate}": median_s(rate) for rate in CURVE_PER_S}
    return figures


def charts(measured: Measured, curves: Mapping[str, Any]) -> Sequence[Chart]:
    """Latency over rate, as in figure 10 of the paper."""
    ours = []
    for system in STUDY.cells["published"]:
        figures = measured.figures["published", system][0]
        ours.append(Series(system, CURVE_PER_S, [figures[f"median_s at {rate}"] for rate in CURVE_PER_S]))
    published = [Series(name, points["x"], points["y"], published=True) for name, points in curves.items()]
    axes = "requests per second", "median latency per output token (s)"
    return [Chart("Latency over load", *axes, [*published, *ours], log_x=True, log_y=True)]


STUDY = Study(
    cells={
        "published": ("FasterTransformer", "FasterTransformer, one at a time", "Orca"),
        "limit relative to an idle server": ("FasterTransformer", "Orca"),
        "8 H100": ("FasterTransformer", "Orca", "vLLM"),
        "8 B200": ("FasterTransformer", "Orca", "vLLM"),
    },
    measure=measure,
    charts=charts,
    full=Size(requests=300, seeds=3, precision=1.12),
    smoke=Size(requests=200, seeds=1, precision=2.0),
)
