"""What variants are compared by: all metrics there are, latencies with each of their statistics."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from experiments.comparison.resampling import Mean, Percentile, Statistic, Total
from simcore.core.errors import UnknownNameError
from simcore.core.result import Columns
from simcore.metrics.arrays import Float64Array
from simcore.metrics.definitions import PERCENTILES
from simcore.metrics.metric import Figure, Latency
from simcore.metrics.registry import figures, latencies


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What is kept of one run: its summary, and the requests table in order of their numbers."""

    summary: dict[str, Any]
    requests: Columns

    def of_arrived(self, latency: Latency) -> Float64Array:
        """A latency of every request, NaN for those that arrived outside the measured window."""
        assert latency.of_requests is not None
        values = np.asarray(latency.of_requests(self.requests), dtype=np.float64)
        return np.where(self.requests["arrival_s"] >= self.summary["window"]["start_s"], values, np.nan)


@dataclass(frozen=True, slots=True)
class ComparedMetric:
    """A figure of a run, and how to compute it again from some of the requests where that is possible.

    ``unit`` is "s" for seconds, "share", or else a noun. ``standard`` metrics are compared unless others are asked for.
    """

    key: str
    title: str
    unit: str
    lower_is_better: bool
    standard: bool
    of_run: Callable[[RunRecord], float | None]
    of_requests: Callable[[RunRecord], Statistic] | None = None


def _of_latency(latency: Latency, statistic: str) -> ComparedMetric:
    def of_run(run: RunRecord) -> float | None:
        value: float | None = run.summary["metrics"][latency.name][statistic]
        return value

    def of_requests(run: RunRecord) -> Statistic:
        values = run.of_arrived(latency)
        return Mean(values) if statistic == "mean" else Percentile(values, PERCENTILES[statistic])

    return ComparedMetric(
        f"{latency.name}.{statistic}",
        f"{latency.short} {'mean' if statistic == 'mean' else f'P{PERCENTILES[statistic]:g}'}",
        latency.unit,
        latency.lower_is_better,
        statistic in latency.compared,
        of_run,
        None if latency.of_requests is None else of_requests,  # single gaps are not kept
    )


def _of_figure(figure: Figure) -> ComparedMetric:
    per_request = figure.per_request
    return ComparedMetric(
        figure.name,
        figure.short,
        figure.unit,
        figure.lower_is_better,
        figure.compared,
        lambda run: figure.of_summary(run.summary),
        None if per_request is None else partial(_total, per_request),
    )


def _total(per_request: Callable[[Columns], Float64Array], run: RunRecord) -> Statistic:
    return Total(per_request(run.requests))


def compared_metrics() -> Iterator[ComparedMetric]:
    """Everything that variants can be compared by."""
    for latency in latencies():
        for statistic in ("mean", *PERCENTILES):
            yield _of_latency(latency, statistic)
    for figure in figures():
        yield _of_figure(figure)


def chosen_metrics(keys: tuple[str, ...] | None) -> tuple[ComparedMetric, ...]:
    """The metrics of these keys, or the standard ones; raises ``UnknownNameError`` for a key that there is not."""
    known = {metric.key: metric for metric in compared_metrics()}
    if keys is None:
        return tuple(metric for metric in known.values() if metric.standard)
    for key in keys:
        if key not in known:
            raise UnknownNameError("--metrics", key, known)
    return tuple(known[key] for key in dict.fromkeys(keys))
