"""How much came between times: what rates count, and figures that are made of the same counts."""

import numpy as np

from simcore.metrics.arrays import Float64Array
from simcore.metrics.measured import MeasuredRun, came_between


def arrivals(run: MeasuredRun, edges_s: Float64Array) -> Float64Array:
    """Requests that arrived."""
    return _arrived(run.requests["arrival_s"], edges_s)


def good_arrivals(run: MeasuredRun, edges_s: Float64Array) -> Float64Array:
    """Requests that arrived and, whenever that was, finished within every limit."""
    return _arrived(run.requests["arrival_s"][run.good], edges_s)


def finished(run: MeasuredRun, edges_s: Float64Array) -> Float64Array:
    """Requests that got their last token."""
    return came_between(run.requests["end_s"][run.requests["state"] == "finished"], edges_s)


def output_tokens(run: MeasuredRun, edges_s: Float64Array) -> Float64Array:
    """Output tokens."""
    return run.emitted_by_span(edges_s)


def total_tokens(run: MeasuredRun, edges_s: Float64Array) -> Float64Array:
    """Output tokens, and prompt tokens as the first output token comes."""
    first_s = run.requests["first_token_s"]
    started = ~np.isnan(first_s)
    prompts = came_between(first_s[started], edges_s, run.requests["prompt_tokens"][started])
    total: Float64Array = run.emitted_by_span(edges_s) + prompts
    return total


def attainment(run: MeasuredRun) -> float | None:
    """The share of requests that kept every limit, undecided ones left out; None where no limit is stated."""
    if not any(run.scenario.slo.model_dump().values()):
        return None
    good = int((run.good & run.arrived).sum())
    decided = good + int((run.bad & ~run.good & run.arrived).sum())
    return good / decided if decided else None


def usd_per_million_output_tokens(run: MeasuredRun) -> float | None:
    """What a million output tokens cost while requests arrived; None if none came."""
    tokens = float(run.emitted_by_span(np.array([run.start_s, run.arrivals_end_s]))[0]) if run.arrivals_s else 0.0
    return run.spent_usd(run.start_s, run.arrivals_s) / tokens * 1e6 if tokens else None


def usd_per_good_request(run: MeasuredRun) -> float | None:
    """What a request cost that arrived while requests arrived and finished within every limit; None without any."""
    arrival_s = run.requests["arrival_s"]
    good = int((run.good & run.arrived & (arrival_s <= run.start_s + run.arrivals_s)).sum())
    return run.spent_usd(run.start_s, run.arrivals_s) / good if good else None


def _arrived(times_s: Float64Array, edges_s: Float64Array) -> Float64Array:
    """Counts of events by span, of which each has its beginning; the last has its end too."""
    counts: Float64Array = np.histogram(times_s, bins=edges_s)[0].astype(np.float64)
    return counts
