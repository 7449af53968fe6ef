"""Sarathi-Serve: prompts in chunks beside decodes, so that a limit on the time between tokens is kept under load."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dashboard.figures.chart import Chart, Series
from papers.harness.lengths import laws
from papers.harness.simulating import merged, poisson, run, sustained_rate
from papers.harness.study import Cell, Figures, Measured, Size, Study
from simcore.build.explanation import explain_step
from simcore.build.simulation import Simulation
from simcore.core.result import Result
from simcore.cost.breakdown import StepShape

HOST_THEN = {"async_scheduling": False, "max_cudagraph_tokens": 1, "mixed_graphs": False, "compiled": False}
"""Neither CUDA graphs nor compiled layers: vLLM of 2023, of which all three systems are forks."""
SLOW_HOST = HOST_THEN | {"step_s": 0.03}
MOST_DELAY_S = 2.0
"""Of the median wait for the first step, as in the paper (recalled)."""
SETUPS: dict[str, dict[str, Any]] = {
    "published": {"model": "mistral-7b", "cluster": {"accelerator": "a100-pcie-80gb"}, "host": HOST_THEN},
    "Yi-34B": {
        "model": "yi-34b-200k",
        "cluster": {"accelerator": "a100-pcie-80gb", "tensor_parallel": 2},
        "host": HOST_THEN,
    },
    "host of 30 ms a step": {"model": "mistral-7b", "cluster": {"accelerator": "a100-pcie-80gb"}, "host": SLOW_HOST},
    "H100": {"model": "mistral-7b", "cluster": {"accelerator": "h100-sxm"}},
    "B200": {"model": "mistral-7b", "cluster": {"accelerator": "b200"}},
}
LIMIT_S = {"published": 0.1, "Yi-34B": 0.2, "host of 30 ms a step": 0.1, "H100": 0.05, "B200": 0.05}
HYBRID_RATE_PER_S = 0.7
"""Not stated in what we have of the paper; more than the rate that hybrid batches sustain within the limit."""
SYSTEMS: dict[str, dict[str, Any]] = {
    "Sarathi-Serve": {"name": "chunked-prefill", "max_batched_tokens": 512, "max_running_requests": 128},
    "vLLM of the time": {"name": "prefill-first", "max_batched_tokens": 8192, "max_running_requests": 128},
    "Orca": {"name": "in-flight", "max_batched_tokens": 65536, "max_running_requests": 16},
    "hybrid batches alone": {"name": "in-flight", "max_batched_tokens": 65536, "max_running_requests": 128},
    "vLLM today": {"name": "chunked-prefill"},
}
SHAPES = {"decodes": "4x1024", "decodes and a chunk": "3x1024+1021", "a chunk": "1024"}


def measure(cell: Cell) -> Figures:
    """The capacity at a limit on P99 TBT, times of single steps, and TTFT and TBT at one rate for Yi-34B."""
    base = merged(
        SETUPS[cell.setup],
        {"scheduler": {"batching": SYSTEMS[cell.system]}, "memory": {"prefix_caching": False}},
        {"workload": laws("sharegpt")},
    )

    def at(rate_per_s: float) -> Result:
        return run(merged(base, {"workload": poisson(cell.size.requests, rate_per_s)}), cell.seed)

    def excess(rate_per_s: float) -> float:
        result = at(rate_per_s)
        waited_s = np.median(result.requests["first_scheduled_s"] - result.requests["arrival_s"])
        return float(max(result.summary["metrics"]["itl_s"]["p99"] / LIMIT_S[cell.setup], waited_s / MOST_DELAY_S))

    figures = {"capacity_per_s": sustained_rate(excess, 1.0, cell.size.precision)}
    if cell.setup == "Yi-34B":
        metrics = at(HYBRID_RATE_PER_S).summary["metrics"]
        figures |= {"ttft_s": metrics["ttft_s"]["p50"], "tbt_s": metrics["itl_s"]["p99"]}
        simulation = Simulation.prepare(merged(base, {"workload": poisson(1, 1.0)}), Path())
        figures |= {
            f"ms of {name}": 1e3 * explain_step(simulation, StepShape.parse(shape)).seconds
            for name, shape in SHAPES.items()
        }
    return figures


def charts(measured: Measured, curves: Mapping[str, Any]) -> Sequence[Chart]:
    """Capacity by system, and the batch times of table 2."""
    setups = ("published", "Yi-34B")
    names = ("Mistral-7B", "Yi-34B")
    systems = ("Orca", "vLLM of the time", "Sarathi-Serve")
    capacity = [
        Series(system, names, [measured.mean(setup, system, "capacity_per_s") for setup in setups])
        for system in systems
    ]
    times = [measured.mean("Yi-34B", "Sarathi-Serve", f"ms of {name}") for name in SHAPES]
    published = Series("Yi-34B", list(SHAPES), [curves["table_2_ms"][name] for name in SHAPES], published=True)
    return [
        Chart("Capacity at a limit on P99 TBT", "model", "requests per second", capacity, "bars"),
        Chart("Time of a batch", "batch", "ms", [published, Series("Yi-34B", list(SHAPES), times)], "bars"),
    ]


STUDY = Study(
    cells={
        "published": ("Sarathi-Serve", "vLLM of the time", "Orca"),
        "Yi-34B": ("Sarathi-Serve", "vLLM of the time", "Orca", "hybrid batches alone"),
        "host of 30 ms a step": ("Sarathi-Serve", "vLLM of the time"),
        "H100": ("Sarathi-Serve", "vLLM today"),
        "B200": ("Sarathi-Serve", "vLLM today"),
    },
    measure=measure,
    charts=charts,
    full=Size(requests=200, seeds=4, precision=1.12),
    smoke=Size(requests=60, seeds=1, precision=1.5),
)
