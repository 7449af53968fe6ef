"""What pools among which requests are divided did, against the first: the section ``groups`` of a summary.

The share of requests that are good has Wilson's interval (JASA 1927). The difference of two such shares has Newcombe's,
his method 10 (Statistics in Medicine 17, 1998), which is made of the two. Both take requests as independent. A
difference of latencies is of means by user, each user one observation, with the normal interval of two samples (Welch),
since requests of one user are alike.
"""

from math import sqrt
from typing import Any

import numpy as np

from simcore.core.result import Columns
from simcore.metrics.arrays import Float64Array, Int64Array, Mask
from simcore.metrics.run_facts import RunFacts

LEAST_USERS = 30
"""With fewer in one of two groups there is no interval of the difference of latencies."""
_Z = 1.959963984540054
"""Below it lie 97.5% of the standard normal distribution."""


def group_figures(facts: RunFacts, requests: Columns, good: Mask, bad: Mask, until_s: float) -> dict[str, Any]:
    """By name of the pool: its requests that arrived after the warm-up and before ``until_s``.

    Good and bad requests are those that kept and missed the objectives, undecided ones left out; without objectives
    those that finished and were rejected. The first pool is what others are compared with.
    """
    arrived = (requests["arrival_s"] >= facts.scenario.measurement.warmup_s) & (requests["arrival_s"] < until_s)
    users = _users(facts, requests)
    figures: dict[str, Any] = {}
    first: tuple[int, int, Float64Array] | None = None
    for pool in facts.pools:
        own = pool.of_pool(requests) & arrived
        kept, decided = int((own & good).sum()), int((own & (good | bad)).sum())
        by_user = _means_by_user(users[own], requests["ttft_s"][own])
        figures[pool.name] = {
            "requests": int(own.sum()),
            "users": len(np.unique(users[own])),
            "good": _between(kept / decided, *wilson(kept, decided)) if decided else None,
            "ttft_s": float(by_user.mean()) if len(by_user) else None,
        }
        if first is not None:
            difference = _difference(first[:2], (kept, decided))
            figures[pool.name] |= {
                "good_difference": difference,
                "ttft_s_difference": _difference_of_means(first[2], by_user),
                "verdict": _verdict(difference),
            }
        first = first or (kept, decided, by_user)
    return figures


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95% interval of a share of some trials, of which there must be one."""
    share, z2 = successes / trials, _Z**2 / trials
    middle = (share + z2 / 2) / (1 + z2)
    half = _Z / (1 + z2) * sqrt(share * (1 - share) / trials + z2 / (4 * trials))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def newcombe(one: tuple[int, int], other: tuple[int, int]) -> tuple[float, float]:
    """The 95% interval of the other share less the one, each of some successes and trials."""
    p1, (low1, high1) = one[0] / one[1], wilson(*one)
    p2, (low2, high2) = other[0] / other[1], wilson(*other)
    difference = p2 - p1
    return (
        difference - sqrt((p2 - low2) ** 2 + (high1 - p1) ** 2),
        difference + sqrt((high2 - p2) ** 2 + (p1 - low1) ** 2),
    )


def _users(facts: RunFacts, requests: Columns) -> Int64Array:
    """Whose requests they are: of a session, or without sessions of a tenant, or without tenants each its own."""
    if facts.sessions is not None:
        return np.asarray(facts.sessions)[requests["request_id"]]
    names, users = np.unique(requests["tenant"], return_inverse=True)
    return np.asarray(users if len(names) > 1 else requests["request_id"], dtype=np.int64)


def _means_by_user(users: Int64Array, values: Float64Array) -> Float64Array:
    """The mean of each user's values, NaN left out."""
    known = ~np.isnan(values)
    _, places = np.unique(users[known], return_inverse=True)
    sums, counts = np.bincount(places, weights=values[known]), np.bincount(places)
    return np.asarray(sums / counts, dtype=np.float64)


def _difference(one: tuple[int, int], other: tuple[int, int]) -> dict[str, float] | None:
    if not one[1] or not other[1]:
        return None
    return _between(other[0] / other[1] - one[0] / one[1], *newcombe(one, other))


def _difference_of_means(one: Float64Array, other: Float64Array) -> dict[str, float] | None:
    if min(len(one), len(other)) < LEAST_USERS:
        return None
    difference = float(other.mean() - one.mean())
    half = _Z * sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
    return _between(difference, difference - half, difference + half)


def _between(value: float, low: float, high: float) -> dict[str, float]:
    return {"value": value, "low": low, "high": high}


def _verdict(difference: dict[str, float] | None) -> str:
    if difference is None or difference["low"] <= 0 <= difference["high"]:
        return "undecided"
    return "better" if difference["value"] > 0 else "worse"
