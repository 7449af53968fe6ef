"""A fidelity report as plain data for JSON: every case, every refusal, and the tables."""

from dataclasses import asdict
from math import isfinite
from typing import Any

from experiments.bands.bands import LEVEL
from fidelity.case import Outcome, Refusal
from fidelity.evaluated import Evaluated
from fidelity.evaluation import Fidelity
from fidelity.fitted import FITTED
from fidelity.replay import Replayed
from fidelity.table import Cell, Share
from fidelity.tables import tables

SCHEMA_VERSION = 1


def document(fidelity: Fidelity) -> dict[str, Any]:
    """Everything but the series over time; numbers in seconds or per second, errors relative."""
    runs = fidelity.engine_runs
    return {
        "schema_version": SCHEMA_VERSION,
        "fitted_constants": list(FITTED),
        "band_level": LEVEL,
        "engine_runs": None if runs is None else _evaluated(runs),
        "posts": None if fidelity.posts is None else _evaluated(fidelity.posts),
        "per_request": [_replayed(run) for run in fidelity.replayed],
        "references": {reference.title: _evaluated(evaluated) for reference, evaluated in fidelity.references},
        "tables": [
            {
                "title": table.title,
                "columns": list(table.columns),
                "rows": [[_plain(cell) for cell in row] for row in table.rows],
                "note": table.note,
            }
            for table in tables(fidelity)
        ],
    }


def _evaluated(evaluated: Evaluated) -> dict[str, Any]:
    return {
        "cases": [_case(outcome) for outcome in evaluated.outcomes],
        "not_simulated": [_refusal(refusal) for refusal in evaluated.refusals],
    }


def _case(outcome: Outcome) -> dict[str, Any]:
    case = outcome.case
    return {
        "name": case.name,
        "labels": dict(case.labels),
        "measured": dict(case.measured),
        "simulated": dict(outcome.simulated),
        "errors": {key: outcome.error(key) for key in case.measured},
        "bands": {key: list(band) for key, band in outcome.bands.items()},
        "conditions": dict(outcome.conditions),
    }


def _refusal(refusal: Refusal) -> dict[str, Any]:
    return {"name": refusal.name, "labels": dict(refusal.labels), "reason": refusal.reason}


def _replayed(run: Replayed | Refusal) -> dict[str, Any]:
    if isinstance(run, Refusal):
        return _refusal(run)
    return {
        "labels": run.labels,
        "figures": [{**asdict(figure), "error": figure.error} for figure in run.figures],
        "over_time": {series.quantity: series.mean_difference for series in run.series},
    }


def _plain(cell: Cell) -> Any:
    value = cell.value if isinstance(cell, Share) else cell
    return None if isinstance(value, float) and not isfinite(value) else value
