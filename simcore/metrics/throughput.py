"""What was offered, served and produced per second, and whether the service kept up with it."""

from typing import Any

import numpy as np

from simcore.metrics.arrays import Float64Array
from simcore.metrics.confidence import LEVEL, SECTIONS, interval
from simcore.metrics.measured import MeasuredRun
from simcore.metrics.metric import Rate
from simcore.metrics.registry import rates
from simcore.workload.config import ClosedLoopArrivals

_FINISHED_FOR_INTERVAL = 5 * SECTIONS
"""Fewer finished requests than this leave throughput without an interval."""
_PARTS = 5
_LEAST_QUEUE, _LEAST_QUEUE_SHARE = 10.0, 0.02
"""How long a queue must be in the last part of the window of arrivals to count, also as a share of all arrivals."""


def throughput(run: MeasuredRun) -> dict[str, Any]:
    """The section ``throughput`` of a summary: every rate with its interval, and whether the service kept up."""
    if not run.length_s:
        return {**{rate.name: None for rate in rates()}, "keeps_up": None, "ci": None}
    enough = int(run.ended.sum()) >= _FINISHED_FOR_INTERVAL
    found: dict[str, Any] = {}
    intervals: dict[str, Any] = {"level": LEVEL, "method": f"batch means over {SECTIONS} equal spans of time"}
    for rate in rates():
        found[rate.name] = float(_per_s(run, rate, 1)[0])
        intervals[rate.name] = interval(found[rate.name], _per_s(run, rate, SECTIONS).tolist()) if enough else None
    return {**found, "keeps_up": keeps_up(run), "ci": intervals}


def _per_s(run: MeasuredRun, rate: Rate, spans: int) -> Float64Array:
    """The rate in equal spans of its window."""
    until_s = run.arrivals_end_s if rate.over_arrivals else run.end_s
    edges_s = np.linspace(run.start_s, until_s, spans + 1)
    per_s: Float64Array = rate.amounts(run, edges_s) / ((until_s - run.start_s) / spans)
    return per_s


def keeps_up(run: MeasuredRun) -> bool | None:
    """Whether the queue stopped growing while requests arrived; None where arrivals wait for the service themselves.

    It does not if its mean length grew from each fifth of the window of arrivals to the next, but for fifths without
    any queue at first, and came to more than a few requests.
    """
    if isinstance(getattr(run.scenario.workload, "arrivals", None), ClosedLoopArrivals) or not run.arrivals_s:
        return None
    lengths = mean_queue(run, np.linspace(run.start_s, run.arrivals_end_s, _PARTS + 1))
    growth = np.diff(lengths)
    grew = bool((growth >= 0).all() and (growth[_PARTS // 2 :] > 0).all())
    arrived = int(run.arrived.sum())
    return not (grew and lengths[-1] >= max(_LEAST_QUEUE, _LEAST_QUEUE_SHARE * arrived))


def mean_queue(run: MeasuredRun, edges_s: Float64Array) -> Float64Array:
    """Requests that wait for their first step, averaged over each span between two edges."""
    requests = run.requests
    until_s = np.where(np.isnan(requests["first_scheduled_s"]), requests["end_s"], requests["first_scheduled_s"])
    until_s = np.where(np.isnan(until_s), run.end_s, until_s)
    waited_s = _seconds_since(requests["arrival_s"], edges_s) - _seconds_since(until_s, edges_s)
    lengths: Float64Array = np.diff(waited_s) / np.diff(edges_s)
    return lengths


def _seconds_since(times_s: Float64Array, edges_s: Float64Array) -> Float64Array:
    """At each edge, the seconds since each of the times that lie before it, added up."""
    ordered = np.sort(times_s)
    passed = np.searchsorted(ordered, edges_s, side="right")
    total: Float64Array = passed * edges_s - np.concatenate(([0.0], np.cumsum(ordered)))[passed]
    return total
