"""What a comparison found, in plain data."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from simcore.core.result import Columns
from simcore.metrics.arrays import Float64Array

SCHEMA_VERSION = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of one variant; None stands for what is unknown.

    ``value`` is the mean over the seeds, ``difference`` the mean over ``pairs`` seeds of variant - baseline with the
    interval from ``low`` to ``high``, ``relative_difference`` its share of the baseline's mean over the same seeds.
    The intervals of all variants hold together with 95%, and ``verdict`` goes by them: baseline, better, worse, same
    (in every pair), unclear or untested. For information, ``p_value`` is of that difference alone, ``p_holm`` adjusted
    for the number of variants.
    """

    metric: str
    title: str
    unit: str
    variant: str
    value: float | None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    relative_difference: float | None = None
    pairs: int = 0
    p_value: float | None = None
    p_holm: float | None = None
    verdict: str = "untested"


@dataclass(frozen=True, slots=True)
class Curve:
    """How a latency is distributed over all measured requests of all seeds: ``shares`` of them within ``values_s``."""

    values_s: Float64Array
    shares: Float64Array


@dataclass(frozen=True, slots=True)
class Comparison:
    """Variants of one scenario on the same requests, held against a baseline.

    ``rows`` has all variants of the first metric first, in the order in which they were given. ``curves`` are by
    latency, then by variant. ``runs`` gives for each run that is there the value of every metric. ``missing`` are the
    variants and seeds that an interruption left out; then no significance is stated, as the number of seeds was fixed
    beforehand. ``looks`` are the numbers of seeds at which results of this comparison were seen, this one included.
    """

    scenario: dict[str, Any]
    varied: tuple[str, ...]
    variants: tuple[str, ...]
    baseline: str
    seeds: tuple[int, ...]
    method: str
    rows: tuple[Row, ...]
    runs: tuple[dict[str, Any], ...]
    curves: dict[str, dict[str, Curve]]
    missing: tuple[tuple[str, int], ...]
    looks: tuple[int, ...]
    warnings: tuple[str, ...]
    notices: tuple[str, ...]

    @property
    def table(self) -> Columns:
        """The rows as a dictionary of equally long arrays, NaN for None: ``pandas.DataFrame(comparison.table)``."""
        columns: Columns = {}
        for column in fields(Row):
            values = [getattr(row, column.name) for row in self.rows]
            numbers = column.type not in (str, int)
            columns[column.name] = np.array(values, dtype=np.float64 if numbers else None)
        return columns

    def by_metric(self) -> Iterator[list[Row]]:
        """The rows of each metric that has any value, together."""
        for metric in dict.fromkeys(row.metric for row in self.rows):
            rows = [row for row in self.rows if row.metric == metric]
            if any(row.value is not None for row in rows):
                yield rows

    def document(self) -> dict[str, Any]:
        """Everything but the curves, as plain data for JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "varied": list(self.varied),
            "variants": list(self.variants),
            "baseline": self.baseline,
            "seeds": list(self.seeds),
            "complete": not self.missing,
            "missing": [{"variant": variant, "seed": seed} for variant, seed in self.missing],
            "method": self.method,
            "rows": [asdict(row) for row in self.rows],
            "runs": list(self.runs),
            "looks": list(self.looks),
            "warnings": list(self.warnings),
            "notices": list(self.notices),
            "scenario": self.scenario,
        }

    def __str__(self) -> str:
        compared = ", ".join(self.variants)
        return f"{compared} against {self.baseline}, {len(self.seeds)} seeds, {len(self.missing)} runs missing"
