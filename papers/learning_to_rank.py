"""Learning to rank: requests that a ranking puts first go first, against first come, first served."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dashboard.figures.chart import Chart, Series
from papers.harness.lengths import laws
from papers.harness.simulating import merged, normalised_latency_s, poisson, run
from papers.harness.study import Cell, Figures, Measured, Size, Study

HOST_THEN = {"async_scheduling": False, "step_s": 1.4e-3, "per_request_s": 4.3e-5}
"""vLLM before asynchronous scheduling, as docs/reference/engines.md states it."""
A100: dict[str, Any] = {"cluster": {"accelerator": "a100-sxm-80gb"}, "host": HOST_THEN}
SETUPS: dict[str, dict[str, Any]] = {
    "published": A100,
    "1.1 times the capacity": A100,
    "4 times the capacity": A100,
    "H100": {"cluster": {"accelerator": "h100-sxm"}},
    "B200": {"cluster": {"accelerator": "b200"}},
}
LOADS = {"1.1 times the capacity": 1.1, "4 times the capacity": 4.0}
LOAD = 2.0
TAUS = (0.25, 0.5, 0.75)
SYSTEMS: dict[str, Any] = {
    "FCFS": "fcfs",
    **{f"tau {tau}": {"name": "sjf", "predictor": {"name": "rank-noise", "kendall_tau": tau}} for tau in TAUS},
    "true lengths": {"name": "sjf", "predictor": {"name": "oracle"}},
}
TOY_HOST = {
    "step_s": 1.0,
    "per_request_s": 0.0,
    "request_s": 0.0,
    "per_prompt_token_s": 0.0,
    "async_scheduling": False,
}
TOY_ROWS = "arrival_s,prompt_tokens,output_tokens\n0,1,10\n0,1,2\n0,1,1\n"


def measure(cell: Cell) -> Figures:
    """The mean latency per output token at so many times the capacity, and of the toy example."""
    ordering = {"scheduler": {"ordering": SYSTEMS[cell.system]}}
    base = merged({"model": "llama-3.1-8b", "workload": laws("lmsys")}, SETUPS[cell.setup])
    at_once = run(
        merged(base, {"workload": {"requests": cell.size.requests, "arrivals": {"name": "at-once"}}}), cell.seed
    )
    capacity_per_s = cell.size.requests / at_once.requests["end_s"].max()
    workload = poisson(cell.size.requests, LOADS.get(cell.setup, LOAD) * capacity_per_s)
    result = run(merged(base, ordering, {"workload": workload}), cell.seed)
    return {"s_per_token": float(normalised_latency_s(result).mean()), "toy_s_per_token": _toy(ordering)}


def _toy(ordering: Mapping[str, Any]) -> float:
    """Outputs of 10, 2 and 1 tokens, one at a time, a second per token: what the accelerator adds is 0.0003 s."""
    document = {
        "model": "smollm2-135m",
        "cluster": {"accelerator": "h100-sxm"},
        "host": TOY_HOST,
        "scheduler": {"batching": {"name": "chunked-prefill", "max_running_requests": 1}},
        "workload": {"trace": "toy.csv"},
    }
    with TemporaryDirectory() as folder:
        (Path(folder) / "toy.csv").write_text(TOY_ROWS, encoding="utf-8")
        return float(normalised_latency_s(run(merged(document, ordering), 0, Path(folder))).mean())


def charts(measured: Measured, curves: Mapping[str, Any]) -> Sequence[Chart]:
    """Latency by how well the ranking agrees with the truth, at three loads."""
    taus = (*TAUS, 1.0)
    lines = []
    for setup, load in (("1.1 times the capacity", 1.1), ("published", LOAD), ("4 times the capacity", 4.0)):
        fcfs = measured.mean(setup, "FCFS", "s_per_token")
        ratios = [fcfs / measured.mean(setup, name, "s_per_token") for name in list(SYSTEMS)[1:]]
        lines.append(Series(f"{load} times the capacity", taus, ratios))
    published = Series("FCFS over learnt ranking", [curves["tau"]], [curves["ratio"]], published=True)
    title = "Latency of FCFS over that of a ranking"
    return [Chart(title, "Kendall's tau of the ranking", "ratio of mean s/token", [published, *lines])]


STUDY = Study(
    cells={
        "published": tuple(SYSTEMS),
        "1.1 times the capacity": tuple(SYSTEMS),
        "4 times the capacity": tuple(SYSTEMS),
        "H100": ("FCFS", "tau 0.5"),
        "B200": ("FCFS", "tau 0.5"),
    },
    measure=measure,
    charts=charts,
    full=Size(requests=3000, seeds=4),
    smoke=Size(requests=1500, seeds=1),
)
