"""How evenly tenants are served.

| figure | meaning |
|---|---|
| service | weighted prompt tokens of admitted requests, and output tokens delivered (``tenant_service.py``) |
| fair share | what an equal division among the tenants that have requests waiting would have given one of them |
| Jain's index | (sum x)^2 / (n sum x^2) over the n tenants that competed, x being service over fair share |
| maximal service difference | the greatest between two tenants over a time in which both have requests waiting |

Totals say nothing once everybody is served in full, so x counts service only while at least two tenants have requests
waiting, and of those tenants only: whoever has none waiting gets all that it asks for. Without such a time nobody
competed, and there is no index. That x is an allocation over the fair one, and the index over it, are after Jain et al.
(DEC-TR-301, 1984), that service is compared while backlogged is the measure of fair queueing (Golestani, INFOCOM 1994);
recalled. Times are taken at 2001 points of the run. For the maximal service difference see ``service_difference.py``.
"""

from typing import Any

import numpy as np

from simcore.core.result import Columns
from simcore.metrics.arrays import Float64Array, Int64Array, Mask
from simcore.metrics.competition import relative_service, stretches
from simcore.metrics.service_difference import MOST_TENANTS, backlogged_throughout, max_service_difference
from simcore.metrics.tenant_service import OUTPUT_WEIGHT, PROMPT_WEIGHT, TenantService

_POINTS = 2001
MOST_LISTED = 1000
"""Tenants that a summary lists one by one: those with the most requests, where there are more."""


def fairness(requests: Columns, end_s: float, good: Mask, bad: Mask) -> dict[str, Any] | None:
    """The fairness section of a summary, None with one tenant.

    ``good`` marks requests that kept all limits, ``bad`` those that missed one.
    """
    if not end_s or not len(requests["tenant"]) or (requests["tenant"] == requests["tenant"][0]).all():
        return None
    times_s = np.linspace(0.0, end_s, _POINTS)
    service = TenantService(requests, end_s)
    gained, fair = relative_service(service, stretches(requests, service.tenant, times_s), times_s)
    return {
        "weights": {"prompt_token": PROMPT_WEIGHT, "output_token": OUTPUT_WEIGHT},
        "jain_index": jain_index(gained[fair > 0] / fair[fair > 0]),
        "max_service_difference": _service_difference(requests, service, times_s),
        "least_slo_attainment": _least_attainment(service, good, bad),
        "tenant_count": len(service.names),
        "tenants": _by_tenant(requests, service, good, bad),
    }


def jain_index(values: Float64Array) -> float | None:
    """Jain's index of fairness: 1 if all are equal, 1/n if one has everything; None if nobody has anything."""
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else None


def _service_difference(requests: Columns, service: TenantService, times_s: Float64Array) -> float | None:
    """Over those served most, as pairs grow by the square."""
    most = service.most_served(MOST_TENANTS)
    curves = service.curves(most, times_s)
    return max_service_difference(curves, backlogged_throughout(requests, _rows_of(service, most), times_s))


def _least_attainment(service: TenantService, good: Mask, bad: Mask) -> float | None:
    """The share of requests within every limit, of the tenant for whom it is least; undecided ones are left out."""
    tenants = len(service.names)
    kept = np.bincount(service.tenant[good], minlength=tenants)
    decided = kept + np.bincount(service.tenant[bad & ~good], minlength=tenants)
    known = decided > 0
    return float((kept[known] / decided[known]).min()) if known.any() else None


def _rows_of(service: TenantService, tenants: Int64Array) -> list[Int64Array]:
    """The rows of the requests of some tenants, in order."""
    order = np.argsort(service.tenant, kind="stable")
    ends = np.cumsum(np.bincount(service.tenant, minlength=len(service.names)))
    return [order[(ends[tenant - 1] if tenant else 0) : ends[tenant]] for tenant in tenants.tolist()]


def _by_tenant(requests: Columns, service: TenantService, good: Mask, bad: Mask) -> dict[str, dict[str, Any]]:
    """Figures of the tenants with the most requests, in the order of their names."""
    counts = np.bincount(service.tenant)
    listed = np.sort(np.argsort(-counts, kind="stable")[:MOST_LISTED])
    finished, totals = requests["state"] == "finished", service.totals()
    demand = PROMPT_WEIGHT * requests["prompt_tokens"] + OUTPUT_WEIGHT * requests["output_tokens"]
    found = {}
    for tenant, own in zip(listed.tolist(), _rows_of(service, listed), strict=True):
        done = own[finished[own]]
        missed = int((bad[own] & ~good[own]).sum())
        found[str(service.names[tenant])] = {
            "requests": len(own),
            "finished": len(done),
            "demand": float(demand[own].sum()),
            "service": float(totals[tenant]),
            "service_per_s": float(totals[tenant] / service.end_s),
            "mean_ttft_s": _mean(requests["ttft_s"][own]),
            "p99_ttft_s": _p99(requests["ttft_s"][own]),
            "mean_tpot_s": _mean(requests["tpot_s"][done]),
            "mean_e2e_s": _mean(requests["e2e_s"][done]),
            "slo_attainment": _share(int(good[own].sum()), missed),
        }
    return found


def _share(kept: int, missed: int) -> float | None:
    return kept / (kept + missed) if kept + missed else None


def _mean(values: Float64Array) -> float | None:
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else None


def _p99(values: Float64Array) -> float | None:
    values = values[~np.isnan(values)]
    return float(np.percentile(values, 99)) if len(values) else None
