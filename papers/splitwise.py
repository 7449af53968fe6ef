"""Splitwise: prompts on machines that compute well, tokens on machines that are cheap."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dashboard.figures.chart import Chart, Series
from papers.harness.lengths import laws
from papers.harness.simulating import merged, poisson, run, sustained_rate
from papers.harness.study import Cell, Figures, Measured, Size, Study
from simcore.build.explanation import explain_step
from simcore.build.simulation import Simulation
from simcore.cost.breakdown import StepShape

HOST_THEN = {"async_scheduling": False, "step_s": 0.02}
"""So that a token on H100 takes the published time; the three other published times are not fitted."""
BASE: dict[str, Any] = {
    "model": "llama-2-70b",
    "cluster": {"tensor_parallel": 8, "routing": "least-requests"},
    "memory": {"prefix_caching": False},
    "max_context_tokens": 4096,
}
THEN = {"scheduler": {"batching": {"name": "in-flight", "max_batched_tokens": 16384}}, "host": HOST_THEN}
LONG_CONTEXT = {"model": "llama-3.1-70b", "max_context_tokens": 16384}
SETUPS: dict[str, dict[str, Any]] = {
    "published": merged(BASE, THEN, LONG_CONTEXT, {"workload": laws("azure-conv")}),
    "code": merged(BASE, THEN, LONG_CONTEXT, {"workload": laws("azure-code")}),
    "vLLM today": merged(BASE, LONG_CONTEXT, {"workload": laws("azure-conv")}),
}
SHAPES = {"prompt": "512", "token": "1x576"}
MACHINES: dict[str, dict[str, int]] = {
    "4 H100 machines": {"h100-sxm": 4},
    "3 H100 for prompts, 1 for tokens": {"h100-sxm": 3, "decode h100-sxm": 1},
    "3 H100 for prompts, 2 A100 for tokens": {"h100-sxm": 3, "decode a100-sxm-80gb": 2},
    "4 B200 machines": {"b200": 4},
    "3 B200 for prompts, 1 for tokens": {"b200": 3, "decode b200": 1},
    "3 B200 for prompts, 2 H100 for tokens": {"b200": 3, "decode h100-sxm": 2},
}
PRICES = {"h100-sxm": 1.0, "a100-sxm-80gb": 0.46, "b200": 1.5}
"""Of a machine, that of H100 being 1: A100 as in the paper (from memory), B200 assumed."""
LIMITS = ((0.5, 2.0, 1.25), (0.1, 3.0, 1.5), (0.01, 6.0, 5.0))
"""Share that may miss, slowdowns of TTFT and of the mean time per token over a request alone on A100 (recalled)."""


def _cluster(system: str) -> dict[str, Any]:
    pools = []
    for place, (machine, replicas) in enumerate(MACHINES[system].items()):
        role, _, accelerator = machine.rpartition(" ")
        pools.append(
            {"name": f"pool{place}", "accelerator": accelerator, "replicas": replicas, "role": role or "prefill"}
        )
    if len(pools) == 1:
        return {"cluster": {"accelerator": pools[0]["accelerator"], "replicas": pools[0]["replicas"]}}
    return {"cluster": {"accelerator": "h100-sxm", "pools": pools, "handover": {"transfer": "layers"}}}


@cache
def _step_s(accelerator: str, shape: str) -> float:
    """A step of Llama-2-70B on eight, with the host of the time."""
    one = {"name": "fixed", "tokens": 1}
    workload = {**poisson(1, 1.0), "prompt_tokens": one, "output_tokens": one}
    document = merged(BASE, THEN, {"cluster": {"accelerator": accelerator}, "workload": workload})
    return explain_step(Simulation.prepare(document, Path()), StepShape.parse(shape)).seconds


def measure(cell: Cell) -> Figures:
    """Steps, and requests per second at limits relative to one request alone on A100, in all and per price."""
    document = merged(SETUPS[cell.setup], _cluster(cell.system))
    a_prompt_s, a_token_s = (_step_s("a100-sxm-80gb", shape) for shape in ("1024", "2x1024"))

    def excess(rate_per_s: float) -> float:
        requests = run(merged(document, {"workload": poisson(cell.size.requests, rate_per_s)}), cell.seed).requests
        finished = requests["state"] == "finished"
        alone_s = a_prompt_s * np.maximum(requests["prompt_tokens"] / 1024, 0.25)
        found = []
        for share, ttft, tpot in LIMITS:
            late = ~(requests["ttft_s"] <= ttft * alone_s) | ~finished
            slow = (requests["tpot_s"] > tpot * a_token_s) | ~finished
            found += [late.mean() / share, slow.mean() / share]
        return float(max(found))

    rate_per_s = sustained_rate(excess, 8.0, cell.size.precision)
    price = sum(PRICES[name.rpartition(" ")[2]] * machines for name, machines in MACHINES[cell.system].items())
    steps = {
        f"{name} ms on {accelerator}": 1e3 * _step_s(accelerator, shape)
        for accelerator in ("a100-sxm-80gb", "h100-sxm")
        for name, shape in SHAPES.items()
    }
    return {"rate_per_s": rate_per_s, "rate per price": rate_per_s / price} | steps


def charts(measured: Measured, curves: Mapping[str, Any]) -> Sequence[Chart]:
    """Throughput and throughput for a price by cluster, and times of steps."""
    systems = STUDY.cells["published"]
    bars = [
        Series(name, systems, [measured.mean(setup, system, "rate per price") for system in systems])
        for setup, name in (("published", "conversation"), ("code", "code"))
    ]
    steps = [f"{name} ms on {accelerator}" for accelerator in ("a100-sxm-80gb", "h100-sxm") for name in SHAPES]
    ours = [measured.mean("published", systems[0], step) for step in steps]
    published = Series("Llama-2-70B", steps, [curves["steps"][step] for step in steps], published=True)
    return [
        Chart("Requests per second for the price of an H100 machine", "cluster", "1/s", bars, "bars"),
        Chart("Steps", "step", "ms", [published, Series("Llama-2-70B", steps, ours)], "bars"),
    ]


STUDY = Study(
    cells={
        "published": tuple(MACHINES)[:3],
        "code": tuple(MACHINES)[:3],
        "vLLM today": tuple(MACHINES),
    },
    measure=measure,
    charts=charts,
    full=Size(requests=500, seeds=4, precision=1.12),
    smoke=Size(requests=150, seeds=1, precision=1.5),
)
