"""What the runs of one variant say: read one by one, reduced to a few figures, and forgotten."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.comparison.compared_metrics import ComparedMetric, RunRecord
from experiments.comparison.comparison import Curve
from experiments.comparison.pairing import Pairing, pair_up
from experiments.comparison.plan import PlannedRun
from experiments.comparison.resampling import Statistic, standard_errors
from experiments.comparison.run_store import RunStore
from simcore.metrics.arrays import Float64Array
from simcore.metrics.registry import latencies

_CURVE_POINTS = 300


@dataclass(frozen=True, slots=True)
class Evidence:
    """Figures of one variant's runs.

    ``values`` are by seed, then by the key of a metric. ``errors`` are standard errors of the difference to the
    baseline within one pair of runs, by metric, as far as there are any. ``pairings`` are with the baseline's runs, by
    seed.
    ``remarks`` are sentences about prices and input that hold for the runs.
    """

    values: Mapping[int, Mapping[str, float | None]]
    errors: Mapping[str, float | None]
    pairings: Mapping[int, Pairing]
    curves: Mapping[str, Curve]
    remarks: Sequence[str]


def gather(
    store: RunStore,
    runs: Mapping[int, PlannedRun],
    baseline: Mapping[int, PlannedRun],
    metrics: Sequence[ComparedMetric],
    bootstrap: bool,
) -> Evidence:
    """Read a variant's runs that are there, by seed, beside those of the baseline.

    ``bootstrap`` asks for the errors within each pair, and is for a single seed.
    """
    drawn = {latency.name: latency for latency in latencies() if latency.drawn}
    values: dict[int, dict[str, float | None]] = {}
    errors: dict[str, float | None] = {}
    pairings: dict[int, Pairing] = {}
    latencies_s: dict[str, list[Float64Array]] = {name: [] for name in drawn}
    remarks: list[str] = []
    for seed, run in runs.items():
        record = store.record(run)
        values[seed] = {metric.key: metric.of_run(record) for metric in metrics}
        for name, found in latencies_s.items():
            latency_s = record.of_arrived(drawn[name])
            found.append(latency_s[np.isfinite(latency_s)])
        remarks += [record.summary["pricing"]["note"], *record.summary["notices"]]
        if seed in baseline:
            other = store.record(baseline[seed])
            pairings[seed] = pair_up(other, record)
            if bootstrap and pairings[seed].same_requests:
                errors = _errors(other, record, metrics, seed)
    curves = {name: _curve(np.concatenate(found)) for name, found in latencies_s.items() if any(map(len, found))}
    return Evidence(values, errors, pairings, curves, tuple(dict.fromkeys(remarks)))


def _errors(
    baseline: RunRecord, variant: RunRecord, metrics: Sequence[ComparedMetric], seed: int
) -> dict[str, float | None]:
    pairs: dict[str, tuple[Statistic, Statistic]] = {
        metric.key: (metric.of_requests(baseline), metric.of_requests(variant))
        for metric in metrics
        if metric.of_requests is not None
    }
    errors = standard_errors(tuple(pairs.values()), len(variant.requests["request_id"]), seed)
    return dict(zip(pairs, errors, strict=True))


def _curve(values_s: Float64Array) -> Curve:
    """The quantiles at evenly spread shares, and at ever closer ones in the upper tail."""
    tail = 1 - np.geomspace(1 / max(len(values_s), 2), 1, _CURVE_POINTS)
    shares = np.unique(np.concatenate((np.linspace(0, 1, _CURVE_POINTS), tail)))
    return Curve(np.asarray(np.quantile(values_s, shares), dtype=np.float64), shares)
