"""Which requests keep the service level objectives, and which miss them.

A rejected request misses every objective. An unfinished one misses a limit on TTFT or E2E once it is overdue; before
that, and for TPOT, it is undecided and counts neither way. A single token has no TPOT and cannot miss its limit.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simcore.core.result import Columns
from simcore.metrics.definitions import PERCENTILES
from simcore.scenario import Scenario

Mask = NDArray[np.bool_]


def missed(requests: Columns, metric: str, limit_s: float, end_s: float) -> Mask:
    """The requests that are known, at the end of the run, to have missed a limit on a metric."""
    over: Mask = requests[metric] > limit_s
    waiting = np.isnan(requests[metric]) & (requests["state"] == "unfinished")
    overdue = waiting & (end_s - requests["arrival_s"] > limit_s)
    judged: Mask = over | (requests["state"] == "rejected")
    return judged if metric == "tpot_s" else judged | overdue


def kept(requests: Columns, metric: str, limit_s: float) -> Mask:
    """The requests that are known to have kept a limit on a metric."""
    within: Mask = (requests[metric] <= limit_s) & (requests["state"] != "rejected")
    return within


def kept_all(requests: Columns, scenario: Scenario) -> Mask:
    """The finished requests that missed no limit."""
    good: Mask = requests["state"] == "finished"
    for metric, limits in scenario.slo.model_dump().items():
        for limit_s in limits.values():
            good = good & ~(requests[metric] > limit_s)
    return good


def missed_any(requests: Columns, scenario: Scenario, end_s: float) -> Mask:
    """The requests that are known to have missed some limit; without limits, the rejected ones."""
    bad: Mask = requests["state"] == "rejected"
    for metric, limits in scenario.slo.model_dump().items():
        for limit_s in limits.values():
            bad = bad | missed(requests, metric, limit_s, end_s)
    return bad


def objectives(requests: Columns, scenario: Scenario, arrived: Mask, end_s: float) -> dict[str, Any] | None:
    """Each stated objective with the share of the ``arrived`` requests that kept it, undecided ones left out."""
    stated: dict[str, Any] = {}
    for metric, limits in scenario.slo.model_dump().items():
        for percentile, limit_s in limits.items():
            good = int((kept(requests, metric, limit_s) & arrived).sum())
            decided = good + int((missed(requests, metric, limit_s, end_s) & arrived).sum())
            per_mille = round(10 * PERCENTILES[percentile])  # whole, so that 999 of 1,000 do meet 99.9%
            stated[f"{metric}.{percentile}"] = {
                "limit_s": limit_s,
                "percentile": percentile,
                "share_within": good / decided if decided else None,
                "met": 1000 * good >= per_mille * decided if decided else None,
            }
    return stated or None
