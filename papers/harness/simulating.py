"""Scenarios of a study: put together, run, and the greatest rate at which a limit is kept."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from simcore.build.simulation import Simulation
from simcore.core.errors import ServetwinError
from simcore.core.result import Result

_MOST_DOUBLINGS = 14


def merged(*documents: Mapping[str, Any]) -> dict[str, Any]:
    """Scenarios laid over one another: mappings are merged, whatever else is stated later wins.

    A mapping that has a name, which is a policy or a law, replaces the one before as a whole.
    """
    result: dict[str, Any] = {}
    for document in documents:
        for key, value in document.items():
            before = result.get(key)
            if isinstance(before, Mapping) and isinstance(value, Mapping) and "name" not in value:
                result[key] = merged(before, value)
            else:
                result[key] = value
    return result


def run(document: Mapping[str, Any], seed: int, base_dir: Path = Path()) -> Result:
    """Simulate a scenario with the arrivals of a seed; raises ``ServetwinError`` for what is wrong with it."""
    return Simulation.prepare({**document, "seed": seed}, base_dir).run()


def poisson(requests: int, rate_per_s: float) -> dict[str, Any]:
    """The part of a workload that says so many requests arrive at random, at so many per second."""
    return {"requests": requests, "arrivals": {"name": "poisson", "rate_per_s": rate_per_s}}


def normalised_latency_s(result: Result) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Latency per output token of every request; infinite for one that did not finish."""
    per_token = result.requests["e2e_s"] / result.requests["output_tokens"]
    return np.where(result.requests["state"] == "finished", per_token, np.inf)


def has_growing_queue(result: Result, factor: float = 1.5, spare: int = 16) -> bool:
    """Whether clearly more requests are there when the last arrives than when half have come.

    An order that favours short requests hides an overload from the mean latency for as long as a run is short.
    """
    arrival_s, end_s = result.requests["arrival_s"], result.requests["end_s"]
    half, last = (
        int(((arrival_s <= now_s) & ~(end_s <= now_s)).sum()) for now_s in (np.median(arrival_s), arrival_s.max())
    )
    return last > factor * half + spare


def sustained_rate(excess: Callable[[float], float], start_per_s: float, precision: float) -> float:
    """The greatest rate at which a limit is kept: where ``excess``, what is limited over its limit, passes 1.

    It is found by doubling and halving to within a factor of ``precision``, and within that by interpolation. Raises
    ``ServetwinError`` if the limit is kept at no rate of any use, or at all.
    """
    low = high = (start_per_s, excess(start_per_s))
    for _ in range(_MOST_DOUBLINGS):
        if low[1] <= 1:
            high = (2 * low[0], excess(2 * low[0]))
            if high[1] > 1:
                break
            low = high
        else:
            low = (high[0] / 2, excess(high[0] / 2))
            if low[1] <= 1:
                break
            high = low
    else:
        kept = "even" if low[1] <= 1 else "not even"
        raise ServetwinError(f"The limit is {kept} kept at {low[0]:g} requests per second.")
    while high[0] / low[0] > precision:
        rate_per_s = float(np.sqrt(low[0] * high[0]))
        middle = (rate_per_s, excess(rate_per_s))
        low, high = (middle, high) if middle[1] <= 1 else (low, middle)
    if low[1] <= 0 or not np.isfinite(high[1]):
        return float(np.sqrt(low[0] * high[0]))
    share = -np.log(low[1]) / np.log(high[1] / low[1])
    return float(low[0] * (high[0] / low[0]) ** share)
