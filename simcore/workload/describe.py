"""What a trace looks like in numbers: how many requests, how long, how bursty."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simcore.core.content import BlockKeys, Run
from simcore.workload.batch import Int64Array
from simcore.workload.traces import Columns, Trace, read_trace

PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
WINDOWS_S = (1, 10, 60)

Float64Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Distribution:
    """A sample in brief; ``percentiles`` (see PERCENTILES) interpolate linearly between order statistics."""

    mean: float
    min: float
    max: float
    percentiles: dict[str, float]


@dataclass(frozen=True, slots=True)
class Burstiness:
    """How unevenly arrivals fall into successive windows of ``window_s``; only whole windows count.

    ``index_of_dispersion`` is the variance of the counts over their mean, 1 for a Poisson process (Cox and Lewis 1966,
    "The Statistical Analysis of Series of Events"). Both figures are None where there are fewer than two windows.
    """

    window_s: int
    index_of_dispersion: float | None
    peak_to_mean_rate: float | None


@dataclass(frozen=True, slots=True)
class TraceDescription:
    """A trace in numbers. What arrival times are needed for is None in a file without them, or with too few requests.

    ``failed`` requests (without output) are not part of anything else. ``inter_arrival_cv`` is the standard deviation
    of the gaps over their mean, 1 for a Poisson process. ``rank_correlation`` is Spearman's, between prompt and output.
    ``reusable_share`` is the share of all prompt tokens that a cache without bounds would hold when they arrive, in the
    trace's own blocks of ``block_tokens``; both are None where the trace does not say what prompts contain.
    """

    path: str
    format: str
    requests: int
    failed: int
    out_of_order: int
    duration_s: float | None
    mean_rate_per_s: float | None
    prompt_tokens: Distribution
    output_tokens: Distribution
    inter_arrival_s: Distribution | None
    inter_arrival_cv: float | None
    burstiness: tuple[Burstiness, ...]
    rank_correlation: float | None
    block_tokens: int | None
    reusable_share: float | None


def describe(path: Path, format: str = "auto", columns: Columns | None = None) -> TraceDescription:
    """Describe the trace at ``path``; failed and unordered requests are counted. Raises FileError as ``read_trace``."""
    return describe_trace(path, read_trace(path, format, columns, sort=True, skip_failed=True))


def describe_trace(path: Path, trace: Trace) -> TraceDescription:
    """Describe a trace that was read from ``path``."""
    gaps_s = np.empty(0) if trace.arrival_ns is None else np.diff(trace.arrival_ns) / 1e9
    duration_s = float(trace.arrival_ns[-1]) / 1e9 if trace.arrival_ns is not None and len(trace) > 1 else None
    mean_gap_s = float(gaps_s.mean()) if len(gaps_s) else 0.0
    return TraceDescription(
        path=str(path),
        format=trace.format,
        requests=len(trace),
        failed=trace.failed,
        out_of_order=trace.out_of_order,
        duration_s=duration_s,
        mean_rate_per_s=1.0 / mean_gap_s if mean_gap_s else None,
        prompt_tokens=_distribution(trace.prompt_tokens),
        output_tokens=_distribution(trace.output_tokens),
        inter_arrival_s=_distribution(gaps_s) if len(gaps_s) else None,
        inter_arrival_cv=float(gaps_s.std()) / mean_gap_s if mean_gap_s else None,
        burstiness=() if trace.arrival_ns is None else tuple(_burstiness(trace.arrival_ns, w) for w in WINDOWS_S),
        rank_correlation=spearman(trace.prompt_tokens, trace.output_tokens),
        block_tokens=trace.block_tokens,
        reusable_share=reusable_share(trace),
    )


def reusable_share(trace: Trace) -> float | None:
    """The share of prompt tokens in blocks from the start of a prompt that prompts before it also began with.

    A partial last block counts as its id does: as used before if any prompt had it.
    """
    if trace.contents is None or trace.block_tokens is None:
        return None
    size, seen, reused_tokens = trace.block_tokens, set[int](), 0
    for content, prompt_tokens in zip(trace.contents, trace.prompt_tokens.tolist(), strict=True):
        *runs, last = content.prompt
        whole = (*runs, Run(last.first, last.tokens + -prompt_tokens % size))
        keys = list(BlockKeys(whole, size).between(0, -(-prompt_tokens // size)))
        reused = next((place for place, key in enumerate(keys) if key not in seen), len(keys))
        reused_tokens += min(reused * size, prompt_tokens)
        seen.update(keys[reused:])
    return reused_tokens / int(trace.prompt_tokens.sum())


def spearman(first: Int64Array, second: Int64Array) -> float | None:
    """Spearman's rank correlation, ties given their mean rank; None where one side never varies."""
    ranks = np.array([_mean_ranks(first), _mean_ranks(second)])
    if np.any(ranks.std(axis=1) == 0):
        return None
    return float(np.corrcoef(ranks)[0, 1])


def _mean_ranks(values: Int64Array) -> Float64Array:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(counts) - (counts - 1) / 2
    ranks: Float64Array = mean_rank[place]
    return ranks


def _distribution(values: Int64Array | Float64Array) -> Distribution:
    percentiles = dict(zip((f"p{p}" for p in PERCENTILES), np.percentile(values, PERCENTILES).tolist(), strict=True))
    return Distribution(float(values.mean()), float(values.min()), float(values.max()), percentiles)


def _burstiness(arrival_ns: Int64Array, window_s: int) -> Burstiness:
    window_ns = window_s * 10**9
    whole_windows = int(arrival_ns[-1] // window_ns)
    if whole_windows < 2:
        return Burstiness(window_s, None, None)
    edges = np.arange(whole_windows + 1, dtype=np.int64) * window_ns
    counts = np.diff(np.searchsorted(arrival_ns, edges))
    return Burstiness(window_s, float(counts.var() / counts.mean()), float(counts.max() / counts.mean()))
