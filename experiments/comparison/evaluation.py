"""From finished runs to a comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isclose
from pathlib import Path

import numpy as np

from experiments.comparison.compared_metrics import ComparedMetric
from experiments.comparison.comparison import Comparison, Row
from experiments.comparison.evidence import Evidence, gather
from experiments.comparison.method import describe_method
from experiments.comparison.plan import Plan
from experiments.comparison.remarks import remarks_on
from experiments.comparison.resampling import BLOCKS
from experiments.comparison.run_store import RunStore
from experiments.comparison.significance import Estimate, holm, mean_difference, student

_ROUNDING = 1e-12


def evaluate(plan: Plan, folder: Path, looks: Sequence[int] = ()) -> Comparison:
    """Compare the variants by those runs of the plan that ``folder`` holds.

    ``looks`` are the numbers of seeds at which results of this comparison were seen before. Raises ``FileError`` for a
    run that cannot be read.
    """
    store = RunStore(folder)
    there = {(run.variant, run.seed): run for run in plan.runs if store.holds(run)}
    missing = tuple((run.variant, run.seed) for run in plan.runs if (run.variant, run.seed) not in there)
    of_variant = {
        variant: {seed: there[variant, seed] for seed in plan.seeds if (variant, seed) in there}
        for variant in plan.variants
    }
    baseline = of_variant[plan.baseline]
    single = len(plan.seeds) == 1
    evidence = {
        variant: gather(store, runs, baseline, plan.metrics, single and variant != plan.baseline)
        for variant, runs in of_variant.items()
    }
    warnings, notices = remarks_on(plan, evidence, missing, looks)
    return Comparison(
        scenario=plan.baseline_document,
        varied=plan.varied,
        variants=plan.variants,
        baseline=plan.baseline,
        seeds=plan.seeds,
        method=describe_method(len(plan.seeds), len(plan.variants) - 1),
        rows=tuple(row for metric in plan.metrics for row in _rows(metric, plan, evidence, complete=not missing)),
        runs=tuple(
            {"variant": variant, "seed": seed, "values": dict(values)}
            for variant, found in evidence.items()
            for seed, values in found.values.items()
        ),
        curves={
            name: {variant: found.curves[name] for variant, found in evidence.items() if name in found.curves}
            for name in dict.fromkeys(name for found in evidence.values() for name in found.curves)
        },
        missing=missing,
        looks=tuple(sorted({*looks, *(() if missing else (len(plan.seeds),))})),
        warnings=warnings,
        notices=notices,
    )


def _rows(metric: ComparedMetric, plan: Plan, evidence: Mapping[str, Evidence], complete: bool) -> list[Row]:
    """The rows of one metric, p-values adjusted for the number of variants."""
    rows = [_row(metric, variant, plan, evidence, complete) for variant in plan.variants]
    tested = [(index, row.p_value) for index, row in enumerate(rows) if row.p_value is not None]
    adjusted = holm([p_value for _, p_value in tested])
    for (index, _), p_holm in zip(tested, adjusted, strict=True):
        rows[index] = replace(rows[index], p_holm=p_holm)
    return rows


def _verdict(metric: ComparedMetric, estimate: Estimate) -> str:
    """What the interval says: it decides."""
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return "untested"
    if low == high == 0:
        return "same"
    if low <= 0 <= high:
        return "unclear"
    return "better" if (high < 0) == metric.lower_is_better else "worse"


def _row(metric: ComparedMetric, variant: str, plan: Plan, evidence: Mapping[str, Evidence], complete: bool) -> Row:
    own = {seed: values[metric.key] for seed, values in evidence[variant].values.items()}
    known = [value for value in own.values() if value is not None]
    row = Row(metric.key, metric.title, metric.unit, variant, float(np.mean(known)) if known else None)
    if variant == plan.baseline:
        return replace(row, verdict="baseline")
    base = {seed: values[metric.key] for seed, values in evidence[plan.baseline].values.items()}
    pairs = [
        (ours, theirs) for seed, ours in own.items() if ours is not None and (theirs := base.get(seed)) is not None
    ]
    if not pairs:
        return row
    differences = np.array(
        # Sums that differ in their last digits alone do not differ.
        [0.0 if isclose(ours, theirs, rel_tol=_ROUNDING) else ours - theirs for ours, theirs in pairs],
        dtype=np.float64,
    )
    comparisons = len(plan.variants) - 1
    if len(plan.seeds) == 1:
        estimate = _of_one_pair(float(differences[0]), evidence[variant].errors.get(metric.key), comparisons)
    else:
        estimate = mean_difference(differences, comparisons)
    level = float(np.mean([theirs for _, theirs in pairs]))
    tested = complete and len(pairs) == len(plan.seeds)
    return replace(
        row,
        difference=estimate.difference,
        low=estimate.low,
        high=estimate.high,
        relative_difference=estimate.difference / level if level else None,
        pairs=len(pairs),
        p_value=estimate.p_value if tested else None,
        verdict=_verdict(metric, estimate) if tested else row.verdict,
    )


def _of_one_pair(difference: float, standard_error: float | None, comparisons: int) -> Estimate:
    return Estimate(difference) if standard_error is None else student(difference, standard_error, BLOCKS, comparisons)
