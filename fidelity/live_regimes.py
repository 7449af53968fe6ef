"""Load regimes of a scenario: when little comes, near what the service can do, beyond it, and short of memory."""

from collections.abc import Callable, Mapping
from typing import Any

from simcore.core.result import Result

Simulate = Callable[[Mapping[str, Any]], Result]

UNLOADED, KNEE, OVERLOAD, THRASHING = "unloaded", "knee", "overload", "KV thrashing"
_LOADS = {UNLOADED: 0.15, KNEE: 0.7, OVERLOAD: 1.5, THRASHING: 1.0}
"""Arrivals as a share of what the service can do, the last where memory does not limit it."""
_MEMORY = 0.4
"""The share of the blocks used at most by an overloaded service that it has where it is to thrash."""
_AT_ONCE = 1e6
AS_STATED = "as stated"


def regimes_of(document: Mapping[str, Any], simulate: Simulate, longest_blocks: int) -> dict[str, dict[str, Any]]:
    """The scenario under each load, with arrivals and lengths of a seed of its own.

    What the service can do is simulated with all requests at once. Only arrivals at a stated rate can be changed; any
    other workload is taken as it is stated. ``longest_blocks`` are what its longest request holds.
    """
    workload = document.get("workload")
    arrivals = workload.get("arrivals") if isinstance(workload, Mapping) else None
    if not isinstance(arrivals, Mapping) or "rate_per_s" not in arrivals:
        return {AS_STATED: dict(document)}
    burst = simulate(_changed(document, _AT_ONCE, 0))
    able_per_s = burst.summary["throughput"]["requests_per_s"]
    found = {name: _changed(document, able_per_s * load, place) for place, (name, load) in enumerate(_LOADS.items(), 1)}
    blocks = max(round(burst.summary["kv"]["peak_used_blocks"] * _MEMORY), longest_blocks + 1)
    memory = {**found[THRASHING].get("memory", {}), "num_gpu_blocks": blocks}
    found[THRASHING] = {**found[THRASHING], "memory": memory}
    return found


def _changed(document: Mapping[str, Any], rate_per_s: float, seeds_on: int) -> dict[str, Any]:
    workload = document["workload"]
    arrivals = {**workload["arrivals"], "rate_per_s": rate_per_s}
    seed = document.get("seed", 0) + seeds_on
    return {**document, "seed": seed, "workload": {**workload, "arrivals": arrivals}}
