"""VTC: tenants are served by how many tokens they have had, against first come, first served and limits on rates."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.figures.chart import Chart, Series
from papers.harness.catalogue import published_of
from papers.harness.simulating import merged, run
from papers.harness.study import Cell, Figures, Measured, Size, Study
from simcore.core.result import Result

HOST_THEN = {"async_scheduling": False, "max_cudagraph_tokens": 1, "mixed_graphs": False, "compiled": False}
A10G: dict[str, Any] = {
    "model": "llama-2-7b",
    "cluster": {"accelerator": "a10g"},
    "memory": {"num_gpu_blocks": 626, "prefix_caching": False},  # 10,000 tokens and a null block
    "scheduler": {"batching": "prefill-first"},
    "host": HOST_THEN,
}
SETUPS: dict[str, dict[str, Any]] = {
    "published": A10G,
    "27 clients": A10G,
    "H100": {"model": "llama-3.1-8b", "cluster": {"accelerator": "h100-sxm"}},
    "B200": {"model": "llama-3.1-8b", "cluster": {"accelerator": "b200"}},
}
RATES_PER_S = {"published": (1.5, 3.0), "H100": (60.0, 120.0), "B200": (120.0, 240.0)}
SPEED_UP = {"published": 1.0, "H100": 20.0, "B200": 40.0}
"""So many times shorter are runs on GPUs that serve so many times as much."""
LENGTH = 256


def _per_minute(requests: int) -> list[dict[str, Any]]:
    return [{"name": "sliding-window", "limit": requests, "window_s": 60.0, "per_tenant": True}]


SYSTEMS: dict[str, dict[str, Any]] = {
    "FCFS": {"ordering": "fcfs"},
    "VTC": {"ordering": "vtc"},
    "RPM 5": {"admission": _per_minute(5)},
    "RPM 20": {"admission": _per_minute(20)},
    "RPM 30": {"admission": _per_minute(30)},
}


def _two_clients(setup: str, duration_s: float) -> dict[str, Any]:
    fixed = {"name": "fixed", "tokens": LENGTH}
    streams = [
        {
            "tenant": tenant,
            "duration_s": duration_s,
            "arrivals": {"name": "poisson", "rate_per_s": rate_per_s},
            "prompt_tokens": fixed,
            "output_tokens": fixed,
            "max_output_tokens": LENGTH,
        }
        for tenant, rate_per_s in zip("ab", RATES_PER_S[setup], strict=True)
    ]
    return {"streams": streams}


def _many_clients() -> dict[str, Any]:
    stated = published_of("vtc").parameters["clients"]
    shares = [1 / rank ** stated["zipf"] for rank in range(1, stated["number"] + 1)]
    return {
        "requests": stated["requests"],
        "arrivals": {"name": "poisson", "rate_per_s": stated["rate_per_s"]},
        "prompt_tokens": {"name": "lognormal", **stated["prompt_tokens"]},
        "output_tokens": {"name": "lognormal", **stated["output_tokens"]},
        "tenants": [
            {"name": f"{rank:02}", "share": share / sum(shares), "max_output_tokens": stated["output_tokens"]["max"]}
            for rank, share in enumerate(shares, start=1)
        ],
    }


def measure(cell: Cell) -> Figures:
    """Token throughput until the last request has ended; of two clients also how far apart their service comes."""
    base = merged(SETUPS[cell.setup], {"scheduler": SYSTEMS[cell.system]})
    if cell.setup == "27 clients":
        return {"tokens_per_s": _tokens_per_s(run({**base, "workload": _many_clients()}, cell.seed))}
    rate_per_s = sum(RATES_PER_S["published"])
    end_s = cell.size.requests / rate_per_s / SPEED_UP[cell.setup]
    workload = _two_clients(cell.setup, end_s)

    def gap(until_s: float) -> float:
        cut = run({**base, "workload": workload, "measurement": {"end_s": until_s}}, cell.seed)
        return float(cut.summary["fairness"]["max_service_difference"])

    bound = 2 * max(LENGTH, 2 * 10_000)
    figures = {"gap": gap(end_s), "gap by half time": gap(end_s / 2)}
    figures["gap over bound"] = figures["gap"] / bound
    figures["growth"] = figures["gap"] / figures["gap by half time"]
    return figures | {"tokens_per_s": _tokens_per_s(run({**base, "workload": workload}, cell.seed))}


def _tokens_per_s(result: Result) -> float:
    done = result.requests["state"] == "finished"
    tokens = result.requests["prompt_tokens"][done].sum() + result.requests["output_tokens"][done].sum()
    return float(tokens / result.requests["end_s"][done].max())


def charts(measured: Measured, curves: Mapping[str, Any]) -> Sequence[Chart]:
    """Throughput of the schedulers as in table 2, and the gap of service over time."""
    names = list(SYSTEMS)
    ours = [measured.mean("27 clients", name, "tokens_per_s") for name in names]
    published = Series("real trace", names, [curves["tokens_per_s"][name] for name in names], published=True)
    figures = ("gap by half time", "gap")
    gaps = [
        Series(system, (0.5, 1.0), [measured.mean("published", system, figure) for figure in figures])
        for system in ("FCFS", "VTC")
    ]
    return [
        Chart("Throughput", "scheduler", "tokens per second", [published, Series("27 clients", names, ours)], "bars"),
        Chart("Greatest difference of service", "share of the run", "weighted tokens", gaps, log_y=True),
    ]


STUDY = Study(
    cells={
        "published": ("FCFS", "VTC"),
        "27 clients": ("FCFS", "VTC", "RPM 5", "RPM 20", "RPM 30"),
        "H100": ("FCFS", "VTC"),
        "B200": ("FCFS", "VTC"),
    },
    measure=measure,
    charts=charts,
    full=Size(requests=2700, seeds=4),
    smoke=Size(requests=700, seeds=1),
)
