"""What variants are compared by: a table of metrics. A new one is a row here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.comparison.resampling import Figure, Mean, Percentile, Total
from simcore.core.errors import UnknownNameError
from simcore.core.result import Columns
from simcore.metrics.definitions import PERCENTILES, Float64Array, normalised_latency_s


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is kept of one run: its summary, and the columns of its requests that comparisons need."""

    summary: dict[str, Any]
    requests: Columns

    def latencies_s(self, name: str) -> Float64Array:
        """A latency of every request, in order of their numbers; NaN for those that the summary does not measure."""
        requests = self.requests
        if name == "normalised_latency_s":
            values = normalised_latency_s(requests["e2e_s"], requests["output_tokens"])
        else:
            values = np.asarray(requests[name], dtype=np.float64)
        measured = (requests["state"] == "finished") & (requests["arrival_s"] >= self.summary["window"]["start_s"])
        return np.where(measured, values, np.nan)


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    """A figure of a run, and how to compute it again from some of the requests where that is possible.

    ``unit`` is "s" for seconds, else a noun. ``standard`` metrics are compared unless others are asked for.
    """

    key: str
    title: str
    unit: str
    lower_is_better: bool
    of_run: Callable[[RunRecord], float | None]
    of_requests: Callable[[RunRecord], Figure] | None = None
    standard: bool = True


def _latency(name: str, title: str, statistic: str, standard: bool) -> ComparedMetric:
    def of_run(run: RunRecord) -> float | None:
        value: float | None = run.summary["metrics"][name][statistic]
        return value

    def of_requests(run: RunRecord) -> Figure:
        values = run.latencies_s(name)
        return Mean(values) if statistic == "mean" else Percentile(values, PERCENTILES[statistic])

    words = "mean" if statistic == "mean" else f"P{PERCENTILES[statistic]:g}"
    by_request = name != "itl_s"  # single gaps are not kept
    return ComparedMetric(
        f"{name}.{statistic}", f"{title} {words}", "s", True, of_run, of_requests if by_request else None, standard
    )


def _goodput_per_s(run: RunRecord) -> float | None:
    """Goodput where any limit is stated: without one it would be throughput under another name."""
    return run.summary["throughput"]["goodput_requests_per_s"] if run.summary["slo"] else None


def _fairness(key: str) -> Callable[[RunRecord], float | None]:
    def of_run(run: RunRecord) -> float | None:
        found = run.summary["fairness"]
        value: float | None = found[key] if found else None
        return value

    return of_run


def _least_attainment(run: RunRecord) -> float | None:
    """The share of requests within every limit, of the tenant for whom it is least."""
    tenants = run.summary["fairness"]["tenants"].values() if run.summary["fairness"] and run.summary["slo"] else ()
    shares = [tenant["slo_attainment"] for tenant in tenants if tenant["slo_attainment"] is not None]
    return min(shares, default=None)


_LATENCIES = {
    "ttft_s": ("TTFT", ("mean", "p99")),
    "tpot_s": ("TPOT", ("mean", "p99")),
    "itl_s": ("ITL", ()),
    "e2e_s": ("E2E", ("mean", "p99")),
    "queue_s": ("queue", ()),
    "normalised_latency_s": ("normalised latency", ("mean",)),
}
_METRICS = (
    *(
        _latency(name, title, statistic, statistic in standard)
        for name, (title, standard) in _LATENCIES.items()
        for statistic in ("mean", *PERCENTILES)
    ),
    ComparedMetric(
        "requests_per_s", "throughput", "requests/s", False, lambda run: run.summary["throughput"]["requests_per_s"]
    ),
    ComparedMetric(
        "output_tokens_per_s",
        "output tokens",
        "tokens/s",
        False,
        lambda run: run.summary["throughput"]["output_tokens_per_s"],
        standard=False,
    ),
    ComparedMetric("goodput_requests_per_s", "goodput", "requests/s", False, _goodput_per_s),
    ComparedMetric("jain_index", "Jain's fairness", "index", False, _fairness("jain_index")),
    ComparedMetric(
        "max_service_difference", "service difference", "weighted tokens", True, _fairness("max_service_difference")
    ),
    ComparedMetric("least_slo_attainment", "worst tenant's SLO", "share", False, _least_attainment),
    ComparedMetric(
        "preemptions",
        "preemptions",
        "preemptions",
        True,
        lambda run: run.summary["preemptions"]["total"],
        lambda run: Total(run.requests["preemptions"].astype(np.float64)),
    ),
    ComparedMetric(
        "rejected",
        "rejected",
        "requests",
        True,
        lambda run: run.summary["counts"]["rejected"],
        lambda run: Total((run.requests["state"] == "rejected").astype(np.float64)),
    ),
    ComparedMetric(
        "unfinished",
        "unfinished",
        "requests",
        True,
        lambda run: run.summary["counts"]["unfinished"],
        lambda run: Total((run.requests["state"] == "unfinished").astype(np.float64)),
        standard=False,
    ),
)
METRICS = {metric.key: metric for metric in _METRICS}

KEPT_COLUMNS = (
    "request_id",
    "state",
    "prompt_tokens",
    "output_tokens",
    "arrival_s",
    "queue_s",
    "ttft_s",
    "tpot_s",
    "e2e_s",
    "preemptions",
)
"""Columns of the requests table that metrics are computed from and pairs are matched by."""


def chosen_metrics(keys: tuple[str, ...] | None) -> tuple[ComparedMetric, ...]:
    """The metrics of these keys, or the standard ones; raises ``UnknownNameError`` for a key that there is not."""
    if keys is None:
        return tuple(metric for metric in _METRICS if metric.standard)
    for key in keys:
        if key not in METRICS:
            raise UnknownNameError("--metrics", key, METRICS)
    return tuple(METRICS[key] for key in dict.fromkeys(keys))
