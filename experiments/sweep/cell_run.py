"""What is done with a cell: one run, or runs at rising rates until limits do not hold any more."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

from experiments.settings import with_settings
from experiments.sweep.rates import holds_or_keeps_up, rate_of, rate_path
from simcore.build.simulation import Simulation
from simcore.core.errors import ServetwinError

Row = dict[str, Any]
_NEAR = 1.02
"""The knee is known when the rate that fails is no more than so many times the one that holds."""
_MOST_DOUBLINGS = 16
_SECTIONS = ("counts", "throughput", "slo", "kv", "preemptions", "utilisation", "cost", "fairness")


@dataclass(frozen=True, slots=True)
class CellTask:
    """A cell's scenario, and whether its rate is to be raised to the knee."""

    document: dict[str, Any]
    to_knee: bool


def perform(task: CellTask) -> list[Row]:
    """The rows of a cell; what is wrong with its scenario stands in the column ``error`` of a single one."""
    try:
        return _to_knee(task.document) if task.to_knee else [_run(task.document)]
    except ServetwinError as error:
        return [{"error": str(error)}]


def _run(document: Mapping[str, Any]) -> Row:
    return row_of(Simulation.prepare(document, Path()).run().summary)


def row_of(summary: Mapping[str, Any]) -> Row:
    """The figures of a summary by name, ``ttft_s.p99``; nothing that depends on the machine."""
    row: Row = {}
    _flatten(summary["metrics"], "", row)
    for section in _SECTIONS:
        _flatten(summary[section], f"{section}.", row)
    row["pricing.outside_calibrated_range"] = summary["pricing"]["outside_calibrated_range"]
    row["holds"] = holds_or_keeps_up(summary)
    return row


def _flatten(value: Any, name: str, row: Row) -> None:
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key in ("tenants", "rejected_by_reason", "tiers", "ci", "method", "percentile"):
                if key == "ci":
                    _flatten_intervals(part, name, row)
                continue
            _flatten(part, f"{name}{key}.", row)
    elif isinstance(value, bool | int | float) or value is None:
        row[name.removesuffix(".")] = value


def _flatten_intervals(intervals: Mapping[str, Any], name: str, row: Row) -> None:
    for key, bounds in intervals.items():
        if isinstance(bounds, list):
            row[f"{name}{key}.ci_low"], row[f"{name}{key}.ci_high"] = bounds


def _to_knee(document: Mapping[str, Any]) -> list[Row]:
    """Runs at rates that are doubled, or halved, until one holds and one does not, then at rates between the two.

    The knee is the largest that holds below one that does not; requests so few that none does have no knee.
    """
    path, rate = rate_path(document), rate_of(document)
    rows: dict[float, Row] = {}
    low: float | None = None
    high: float | None = None
    for _ in range(2 * _MOST_DOUBLINGS):
        rate = float(f"{rate:.4g}")
        if rate not in rows:
            rows[rate] = {"rate": rate} | _run(with_settings(document, {path: rate}))
        if rows[rate]["holds"]:
            low = rate
        else:
            high = rate
        if low is not None and high is not None and high / low <= _NEAR:
            break
        if low is None or high is None:
            rate = 2 * rate if high is None else rate / 2
        else:
            rate = sqrt(low * high)
    return [rows[each] | {"knee": each == low and high is not None} for each in sorted(rows)]
