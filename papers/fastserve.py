"""FastServe: a skip-join multi-level feedback queue that preempts, against first come, first served."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.figures.chart import Chart, Series
from papers.harness.lengths import laws
from papers.harness.simulating import has_growing_queue, merged, normalised_latency_s, poisson, run, sustained_rate
from papers.harness.study import Cell, Figures, Measured, Size, Study

HOST_THEN = {"async_scheduling": False, "max_cudagraph_tokens": 1, "mixed_graphs": False, "compiled": False}
LONG_TAIL = {"output_tokens": {"name": "lognormal", "median": 100, "sigma": 1.4, "max": 1500}}
PREFILL_FIRST = {"name": "prefill-first", "max_batched_tokens": 2560}
OPT: dict[str, Any] = {
    "model": "opt-13b",
    "cluster": {"accelerator": "a100-sxm-40gb"},
    "memory": {"prefix_caching": False, "swap_space_gb": 200.0},
    "scheduler": {"batching": PREFILL_FIRST},
    "host": HOST_THEN,
    "workload": laws("sharegpt-short"),
}
LLAMA = {"model": "llama-3.1-8b", "workload": laws("sharegpt-short")}
SETUPS: dict[str, dict[str, Any]] = {
    "published": OPT,
    "long-tailed outputs": merged(OPT, {"workload": LONG_TAIL}),
    "batches of 8": merged(OPT, {"scheduler": {"batching": PREFILL_FIRST | {"max_running_requests": 8}}}),
    "H100": merged(LLAMA, {"cluster": {"accelerator": "h100-sxm"}}),
    "B200": merged(LLAMA, {"cluster": {"accelerator": "b200"}}),
}
LIMIT_S = {"published": 0.3, "long-tailed outputs": 0.3, "batches of 8": 0.3, "H100": 0.03, "B200": 0.03}
START_PER_S = {"published": 2.0, "long-tailed outputs": 2.0, "batches of 8": 0.5, "H100": 32.0, "B200": 64.0}
TIMES_REQUESTS = {"H100": 3, "B200": 4}
PREEMPTIVE = {"ordering": "mlfq", "preemption": {"mode": "swap"}}
SYSTEMS: dict[str, dict[str, Any]] = {
    "FCFS": {"ordering": "fcfs"},
    "FastServe": PREEMPTIVE,
    "FastServe, recomputing": {"ordering": "mlfq"},
}


def measure(cell: Cell) -> Figures:
    """The rate at which late requests keep a mean latency per output token; also if no queue may grow."""
    base = merged(SETUPS[cell.setup], {"scheduler": SYSTEMS[cell.system]})
    requests = cell.size.requests * TIMES_REQUESTS.get(cell.setup, 1)

    def excess(rate_per_s: float, no_growing_queue: bool) -> float:
        result = run(merged(base, {"workload": poisson(requests, rate_per_s)}), cell.seed)
        late_s = normalised_latency_s(result)[requests // 2 :]
        if no_growing_queue and has_growing_queue(result):
            return float("inf")
        return float(late_s.mean() / LIMIT_S[cell.setup])

    start_per_s, precision = START_PER_S[cell.setup], cell.size.precision
    return {
        "rate_per_s": sustained_rate(lambda rate: excess(rate, False), start_per_s, precision),
        "stable_rate_per_s": sustained_rate(lambda rate: excess(rate, True), start_per_s, precision),
    }


def charts(measured: Measured, curves: Mapping[str, Any]) -> Sequence[Chart]:
    """Sustained rates over those of FCFS."""
    setups = ("published", "long-tailed outputs", "batches of 8")
    ratios = [
        measured.mean(setup, "FastServe", "rate_per_s") / measured.mean(setup, "FCFS", "rate_per_s") for setup in setups
    ]
    published = Series("at most", setups[:1], [curves["ratio"]], published=True)
    title = "Sustained rate of FastServe over FCFS"
    return [Chart(title, "setup", "ratio", [published, Series("ours", setups, ratios)], "bars")]


STUDY = Study(
    cells={
        "published": ("FCFS", "FastServe", "FastServe, recomputing"),
        "long-tailed outputs": ("FCFS", "FastServe"),
        "batches of 8": ("FCFS", "FastServe"),
        "H100": ("FCFS", "FastServe"),
        "B200": ("FCFS", "FastServe"),
    },
    measure=measure,
    charts=charts,
    full=Size(requests=500, seeds=3, precision=1.12),
    smoke=Size(requests=200, seeds=1, precision=1.5),
)
