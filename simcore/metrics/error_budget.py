"""The service over time: what kept its objectives, how fast the error budget went, and what it cost.

An objective such as P99 leaves one request in a hundred to miss its limit: the error budget. It burns at rate 1 where
just as many miss it, and faster where more do. Of several objectives the one that burns fastest counts.

Source: The Site Reliability Workbook (Beyer et al., 2018), chapter 5, whose alert for a burn rate of 6 is the limit of
the red regime.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from simcore.core.result import Columns
from simcore.metrics.arrays import Float64Array
from simcore.metrics.definitions import PERCENTILES
from simcore.metrics.fleets import replicas_by_span
from simcore.metrics.measured import MeasuredRun, came_between
from simcore.metrics.objectives import kept, missed
from simcore.metrics.run_facts import RunFacts
from simcore.recording.fleet_log import SERVING

SPANS = 60
RED_BURN = 6.0
REGIMES = ("green", "yellow", "red")


def service_table(facts: RunFacts, run: MeasuredRun) -> Columns:
    """One row for each of 60 spans of the window of arrivals; none where it has no length.

    What no request is known of is NaN, and so is what needs an objective where none is stated.
    """
    edges_s = np.linspace(run.start_s, run.start_s + run.arrivals_s, (SPANS if run.arrivals_s else 0) + 1)
    arrived = _arrived(run, edges_s)
    stated = any(run.scenario.slo.model_dump().values())
    good, decided = arrived(run.good), arrived(run.good | run.bad)
    unknown = np.full(len(edges_s) - 1, np.nan)
    burn = _burn(run, arrived) if stated else unknown
    spans = list(zip(edges_s[:-1].tolist(), np.diff(edges_s).tolist(), strict=True))
    return {
        "start_s": edges_s[:-1],
        "end_s": edges_s[1:],
        "requests": arrived(np.ones(len(run.good), dtype=np.bool_)).astype(np.int64),
        "slo_attainment": np.divide(good, decided, out=unknown.copy(), where=(decided > 0) & stated),
        "burn_rate": burn,
        "regime": np.array([regime(rate) for rate in burn.tolist()], dtype=np.str_),
        "replicas": _replicas(facts, edges_s),
        "usd": np.array([run.spent_usd(start_s, length_s) for start_s, length_s in spans]),
    }


def service_figures(table: Columns, run: MeasuredRun, mean_replicas: float | None) -> dict[str, Any]:
    """The section ``service`` of a summary: what the table comes to."""
    known = [name for name in table["regime"].tolist() if name]
    return {
        "mean_replicas": mean_replicas,
        "error_budget_spent": _spent(run),
        "regime_shares": {name: known.count(name) / len(known) if known else None for name in REGIMES},
    }


def regime(burn_rate: float) -> str:
    """Green while the budget lasts, yellow while it burns, red where it burns fast; "" where nobody can tell."""
    if np.isnan(burn_rate):
        return ""
    return "green" if burn_rate <= 1 else "yellow" if burn_rate <= RED_BURN else "red"


def _arrived(run: MeasuredRun, edges_s: Float64Array) -> Callable[[Any], Float64Array]:
    """How many of some requests arrived in each span; the first nanosecond of the window is of the first span."""
    opened = np.concatenate(([np.nextafter(edges_s[0], -np.inf)], edges_s[1:]))
    return lambda mask: came_between(run.requests["arrival_s"][mask], opened)


def _objectives(run: MeasuredRun) -> list[tuple[Any, Any, int]]:
    """Who kept and who missed each objective, and how many of 1000 may miss it: whole, so that rates are exact."""
    return [
        (
            kept(run.requests, metric, limit_s),
            missed(run.requests, metric, limit_s, run.end_s),
            1000 - round(10 * PERCENTILES[percentile]),
        )
        for metric, limits in run.scenario.slo.model_dump().items()
        for percentile, limit_s in limits.items()
    ]


def _burn(run: MeasuredRun, count: Callable[[Any], Float64Array]) -> Float64Array:
    """The burn rate of each span, NaN where no request is decided."""
    rates = []
    for good, bad, budget in _objectives(run):
        missing = count(bad)
        decided = missing + count(good)
        rates.append(np.where(decided > 0, 1000 * missing / (np.maximum(decided, 1) * budget), np.nan))
    fastest: Float64Array = np.fmax.reduce(rates)
    return fastest


def _spent(run: MeasuredRun) -> float | None:
    """Share of the error budget of the whole window that is spent; above 1 an objective is missed."""
    if not any(run.scenario.slo.model_dump().values()):
        return None
    found = _burn(run, lambda mask: np.array([float((mask & run.arrived).sum())]))
    return None if np.isnan(found[0]) else float(found[0])


def _replicas(facts: RunFacts, edges_s: Float64Array) -> Float64Array:
    """Replicas that served in each span, on average."""
    total = np.zeros(len(edges_s) - 1)
    for pool in facts.pools:
        total += pool.replicas if pool.fleet is None else replicas_by_span(pool.fleet, [SERVING], edges_s)
    return total
