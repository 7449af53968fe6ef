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


def sustained_rate(keeps: Callable[[float], bool], start_per_s: float, precision: float) -> float:
    """The greatest rate at which ``keeps`` is true, found by doubling and halving to within a factor of ``precision``.

    Raises ``ServetwinError`` if it is true at no rate of any use, or at all.
    """
    low, high = start_per_s, start_per_s
    if keeps(start_per_s):
        for _ in range(_MOST_DOUBLINGS):
            high = low * 2
            if not keeps(high):
                break
            low = high
        else:
            raise ServetwinError(f"The limit is kept even at {low:g} requests per second, so there is no rate to find.")
    else:
        for _ in range(_MOST_DOUBLINGS):
            low = high / 2
            if keeps(low):
                break
            high = low
        else:
            raise ServetwinError(f"The limit is not even kept at {low:g} requests per second.")
    while high / low > precision:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return float(np.sqrt(low * high))
