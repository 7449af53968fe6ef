"""Uncertainty bands: what figures they stand beside, and how they come from those of replays."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from simcore.core.errors import InputError
from simcore.core.result import Result
from simcore.metrics.registry import latencies, rates

LEVEL = 0.8
"""The share of true values that a band is meant to hold."""
FEWEST_REPLAYS = 9
"""With fewer, the tenth percentile lies beyond all of them."""
MOST_REPLAYS = 10_000
STATISTICS = ("mean", "p50", "p90", "p99")
METHOD = (
    "the 10th and 90th percentile over replays of the run, each with all prices of a kind off by an error drawn from "
    "the held-out errors of its fit, or from errors stated of roofline prices, host constants and whole steps, and "
    "tokens spread over experts by one of the distributions that were measured"
)

Figures = dict[str, dict[str, float | None]]
"""The figures of one run that have a band, by metric and statistic; rates stand under "throughput"."""


def banded_latencies() -> tuple[str, ...]:
    """The latencies that have bands."""
    return tuple(latency.name for latency in latencies() if latency.banded)


def banded_rates() -> tuple[str, ...]:
    """The rates that have bands."""
    return tuple(rate.name for rate in rates() if rate.banded)


def check_replays(field: str, replays: int) -> None:
    """Raise ``InputError`` for a number of replays that no band can be made of."""
    if replays != 0 and not FEWEST_REPLAYS <= replays <= MOST_REPLAYS:
        expected = f"0 for no bands, or {FEWEST_REPLAYS} to {MOST_REPLAYS} replays"
        raise InputError(field, replays, expected)


def figures_of(result: Result) -> Figures:
    """The figures of a run that have a band."""
    summary = result.summary
    figures: Figures = {
        metric: {statistic: summary["metrics"][metric][statistic] for statistic in STATISTICS}
        for metric in banded_latencies()
    }
    figures["throughput"] = {rate: summary["throughput"][rate] for rate in banded_rates()}
    return figures


def with_bands(result: Result, replayed: Sequence[Figures]) -> Result:
    """The result with bands in its summary; a figure that some replay lacks has none.

    A band is made to hold the figure that it stands beside, which lies outside where errors lean far to one side.
    """
    summary: dict[str, Any] = dict(result.summary)
    summary["metrics"] = {
        metric: statistics | {"band": _bands(statistics, [figures[metric] for figures in replayed])}
        if metric in banded_latencies()
        else statistics
        for metric, statistics in summary["metrics"].items()
    }
    rates = summary["throughput"]
    summary["throughput"] = rates | {"band": _bands(rates, [figures["throughput"] for figures in replayed])}
    method = {"level": LEVEL, "replays": len(replayed), "method": METHOD}
    summary["pricing"] = summary["pricing"] | {"band": method}
    return replace(result, summary=summary)


def _bands(figures: Mapping[str, Any], replayed: Sequence[Mapping[str, float | None]]) -> dict[str, list[float] | None]:
    found: dict[str, list[float] | None] = {}
    for name in replayed[0]:
        values = [value for replay in replayed if (value := replay[name]) is not None]
        figure = figures[name]
        if figure is None or len(values) < len(replayed):
            found[name] = None
            continue
        outside = (1 - LEVEL) / 2 * 100
        # Of n values the k-th stands for the share k / (n + 1), so that few replays do not make the band too narrow.
        low, high = np.percentile(values, [outside, 100 - outside], method="weibull")
        found[name] = [min(float(low), figure), max(float(high), figure)]
    return found
