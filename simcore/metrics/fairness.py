"""How evenly tenants are served.

| figure | meaning |
|---|---|
| service | prompt tokens of admitted requests, and output tokens delivered, each times its weight |
| fair share | what an equal division among the tenants that have requests waiting would have given one of them |
| Jain's index | (sum x)^2 / (n sum x^2) over the n tenants that competed, x being service over fair share |
| maximal service difference | the greatest between two tenants over a time in which both have requests waiting |

Totals say nothing once everybody is served in full, so x counts service only while at least two tenants have requests
waiting, and of those tenants only: whoever has none waiting gets all that it asks for. Without such a time nobody
competed, and there is no index. That x is an allocation over the fair one, and the index over it, are after Jain et al.
(DEC-TR-301, 1984), that service is compared while backlogged is the measure of fair queueing (Golestani, INFOCOM 1994);
recalled. Times are taken at 2001 points of the run; a tenant competes between two of them if it has requests waiting at
both. For the maximal service difference see ``service_difference.py``.

Service of a request's output is taken to grow evenly from its first token to its last. Weights are those of the virtual
token counter by default: 1 for a prompt token, 2 for an output token.
"""

from typing import Any

import numpy as np

from simcore.core.result import Columns
from simcore.metrics.definitions import Float64Array
from simcore.metrics.service_difference import backlogged_throughout, max_service_difference

PROMPT_WEIGHT, OUTPUT_WEIGHT = 1.0, 2.0


def service_over_time(requests: Columns, times_s: Float64Array) -> dict[str, Float64Array]:
    """Service of each tenant from the start of the run to each of the given times."""
    return {
        str(tenant): _service(requests, requests["tenant"] == tenant, times_s)
        for tenant in np.unique(requests["tenant"])
    }


def _service(requests: Columns, of_tenant: np.ndarray[Any, Any], times_s: Float64Array) -> Float64Array:
    admitted = of_tenant & ~np.isnan(requests["first_scheduled_s"])
    total = PROMPT_WEIGHT * _steps(
        requests["first_scheduled_s"][admitted], requests["prompt_tokens"][admitted], times_s
    )
    started = of_tenant & ~np.isnan(requests["first_token_s"])
    first_s, tokens = requests["first_token_s"][started], requests["output_tokens"][started]
    last_s = np.where(np.isnan(requests["end_s"][started]), times_s[-1], requests["end_s"][started])
    total += OUTPUT_WEIGHT * _steps(first_s, np.ones(len(first_s)), times_s)
    rates = (tokens - 1) / np.maximum(last_s - first_s, 1e-12)
    return total + OUTPUT_WEIGHT * (_ramps(first_s, rates, times_s) - _ramps(last_s, rates, times_s))


def _steps(at_s: Float64Array, amounts: Float64Array, times_s: Float64Array) -> Float64Array:
    """The sum of the amounts that came at or before each time."""
    order = np.argsort(at_s, kind="stable")
    sums = np.concatenate(([0.0], np.cumsum(amounts[order])))
    return sums[np.searchsorted(at_s[order], times_s, side="right")]


def _ramps(from_s: Float64Array, rates: Float64Array, times_s: Float64Array) -> Float64Array:
    """The sum of rates times the seconds since each began."""
    return _steps(from_s, rates, times_s) * times_s - _steps(from_s, rates * from_s, times_s)


def jain_index(values: Float64Array) -> float | None:
    """Jain's index of fairness: 1 if all are equal, 1/n if one has everything; None if nobody has anything."""
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else None


def backlogged(requests: Columns, times_s: Float64Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each tenant, one row each, has requests waiting for their first step at each of the given times."""
    until_s = np.where(np.isnan(requests["first_scheduled_s"]), requests["end_s"], requests["first_scheduled_s"])
    until_s = np.where(np.isnan(until_s), np.inf, until_s)
    rows = []
    for tenant in np.unique(requests["tenant"]):
        own = requests["tenant"] == tenant
        came, went = np.sort(requests["arrival_s"][own]), np.sort(until_s[own])
        rows.append(np.searchsorted(came, times_s, "right") > np.searchsorted(went, times_s, "right"))
    return np.array(rows)


def relative_service(
    service: Float64Array, waiting: np.ndarray[Any, np.dtype[np.bool_]]
) -> tuple[Float64Array, Float64Array]:
    """Each tenant's service while it competes with others, and its fair share of that.

    Both arguments have a row for each tenant and a column for each time.
    """
    competing = waiting[:, 1:] & waiting[:, :-1]
    competing &= competing.sum(axis=0) >= 2
    gained = np.where(competing, np.diff(service, axis=1), 0.0)
    equal = gained.sum(axis=0) / np.maximum(competing.sum(axis=0), 1)
    return gained.sum(axis=1), (competing * equal).sum(axis=1)


def _competition_index(service: Float64Array, waiting: np.ndarray[Any, np.dtype[np.bool_]]) -> float | None:
    gained, fair = relative_service(service, waiting)
    return jain_index(gained[fair > 0] / fair[fair > 0])


def fairness(
    requests: Columns, end_s: float, good: np.ndarray[Any, Any], bad: np.ndarray[Any, Any]
) -> dict[str, Any] | None:
    """The fairness section of a summary, None with one tenant.

    ``good`` marks requests that kept all limits, ``bad`` those that missed one.
    """
    tenants = np.unique(requests["tenant"])
    if len(tenants) < 2 or not end_s:
        return None
    times_s = np.linspace(0.0, end_s, 2001)
    service = service_over_time(requests, times_s)
    curves = np.array(list(service.values()))
    finished = requests["state"] == "finished"
    demand = PROMPT_WEIGHT * requests["prompt_tokens"] + OUTPUT_WEIGHT * requests["output_tokens"]
    by_tenant = {}
    for tenant, curve in zip(tenants, curves, strict=True):
        own = requests["tenant"] == tenant
        done = own & finished
        by_tenant[str(tenant)] = {
            "requests": int(own.sum()),
            "finished": int(done.sum()),
            "demand": float(demand[own].sum()),
            "service": float(curve[-1]),
            "service_per_s": float(curve[-1] / end_s),
            "mean_ttft_s": _mean(requests["ttft_s"][done]),
            "p99_ttft_s": _p99(requests["ttft_s"][done]),
            "mean_tpot_s": _mean(requests["tpot_s"][done]),
            "mean_e2e_s": _mean(requests["e2e_s"][done]),
            "slo_attainment": _share(int(good[own].sum()), int((bad & ~good)[own].sum())),
        }
    return {
        "weights": {"prompt_token": PROMPT_WEIGHT, "output_token": OUTPUT_WEIGHT},
        "jain_index": _competition_index(curves, backlogged(requests, times_s)),
        "max_service_difference": max_service_difference(curves, backlogged_throughout(requests, times_s)),
        "tenants": by_tenant,
    }


def _share(kept: int, missed: int) -> float | None:
    return kept / (kept + missed) if kept + missed else None


def _mean(values: Float64Array) -> float | None:
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else None


def _p99(values: Float64Array) -> float | None:
    values = values[~np.isnan(values)]
    return float(np.percentile(values, 99)) if len(values) else None
