"""Two results on the same requests, metric by metric, with how sure each difference is."""

from collections.abc import Sequence

import numpy as np

from experiments.comparison import Row
from experiments.comparison.compared_metrics import ComparedMetric, RunRecord, chosen_metrics
from experiments.comparison.pairing import pair_up
from experiments.comparison.resampling import BLOCKS, standard_errors
from experiments.comparison.significance import SIGNIFICANT, student
from simcore.core.result import Result

SHOWN = (
    "ttft_s.p50",
    "ttft_s.p99",
    "tpot_s.p50",
    "tpot_s.p99",
    "itl_s.p99",
    "e2e_s.p50",
    "e2e_s.p99",
    "requests_per_s",
    "output_tokens_per_s",
    "goodput_requests_per_s",
    "slo_attainment",
    "usd_per_million_output_tokens",
    "joules_per_output_token",
    "preemptions",
    "rejected",
    "unfinished",
)


def differences(first: Result, second: Result) -> list[tuple[Row, Row]]:
    """The rows of A, the baseline, and of B for each metric that either has.

    Intervals and p-values are those of ``servetwin compare`` with one seed: from a bootstrap over blocks of the
    requests that both served. None where there are too few, or other requests.
    """
    metrics = chosen_metrics(SHOWN)
    one, other = _record(first), _record(second)
    errors = _errors(one, other, metrics, int(first.scenario["seed"]))
    rows = [_rows(metric, one, other, errors.get(metric.key)) for metric in metrics]
    return [pair for pair in rows if any(row.value is not None for row in pair)]


def _record(result: Result) -> RunRecord:
    order = np.argsort(result.requests["request_id"], kind="stable")
    return RunRecord(result.summary, {name: values[order] for name, values in result.requests.items()})


def _errors(one: RunRecord, other: RunRecord, metrics: Sequence[ComparedMetric], seed: int) -> dict[str, float | None]:
    asked = {metric.key: metric.of_requests for metric in metrics if metric.of_requests is not None}
    if not pair_up(one, other).same_requests:
        return {}
    pairs = [(of_requests(one), of_requests(other)) for of_requests in asked.values()]
    return dict(zip(asked, standard_errors(pairs, len(other.requests["request_id"]), seed), strict=True))


def _rows(metric: ComparedMetric, one: RunRecord, other: RunRecord, error: float | None) -> tuple[Row, Row]:
    words = metric.key, metric.title, metric.unit
    theirs, ours = metric.of_run(one), metric.of_run(other)
    baseline = Row(*words, "A", theirs, verdict="baseline")
    if theirs is None or ours is None:
        return baseline, Row(*words, "B", ours)
    difference = float(ours - theirs)
    share = difference / theirs if theirs else None
    if error is None:
        return baseline, Row(*words, "B", ours, difference, relative_difference=share, pairs=1)
    found = student(difference, error, BLOCKS)
    return baseline, Row(
        *words,
        "B",
        ours,
        difference,
        found.low,
        found.high,
        share,
        1,
        found.p_value,
        found.p_value,
        _verdict(metric, difference, found.p_value),
    )


def _verdict(metric: ComparedMetric, difference: float, p_value: float | None) -> str:
    if difference == 0:
        return "same"
    if p_value is None or p_value >= SIGNIFICANT:
        return "unclear"
    return "better" if (difference < 0) == metric.lower_is_better else "worse"
