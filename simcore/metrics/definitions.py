"""The exact meaning of every metric; whatever shows a number takes it from here.

| metric | meaning |
|---|---|
| queue | first scheduled - arrival at the service |
| TTFT | first output token delivered - arrival at the service (queueing and transfers included) |
| TPOT | (last token - first token) / (output tokens - 1), for requests with at least 2 output tokens |
| ITL | gap between two successive delivered tokens of a request; percentiles over all gaps of all requests |
| E2E | last token delivered - arrival |
| normalised latency | E2E / output tokens |
| request, token throughput | requests finished in the window (their output, or prompt and output, tokens) / window |
| goodput | requests finished in the window that kept every stated limit / window |
| prefix hit rate | prompt tokens found cached / prompt tokens, first admission only (recomputation never counts) |

A request with several samples is one: its first token is that of any sample, its last that of all, its TPOT the mean of
theirs and its output all of theirs; gaps are those of each sample, and of the prompt so much was found cached as by the
sample that found least.

Latencies are taken over the finished requests that arrived in the window, gaps over those that end in it. Percentiles
interpolate linearly between order statistics. All arrays are one element per request, in seconds, NaN where undefined.
"""

import numpy as np
from numpy.typing import NDArray

from simcore.core.clock import NS_PER_S
from simcore.core.request import UNSET

Float64Array = NDArray[np.float64]
Int64Array = NDArray[np.int64]

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p999": 99.9}


def between_s(start_ns: Int64Array, end_ns: Int64Array) -> Float64Array:
    """Seconds from one time to another, NaN where either never came."""
    seconds: Float64Array = (end_ns - start_ns) / NS_PER_S
    seconds[(start_ns == UNSET) | (end_ns == UNSET)] = np.nan
    return seconds


def time_per_output_token_s(first_token_ns: Int64Array, end_ns: Int64Array, output_tokens: Int64Array) -> Float64Array:
    """TPOT; NaN for a request with fewer than two output tokens."""
    seconds = between_s(first_token_ns, end_ns)
    seconds[output_tokens < 2] = np.nan
    per_token: Float64Array = seconds / np.maximum(output_tokens - 1, 1)
    return per_token


def prefix_hit_rate(cached_tokens: Int64Array, prompt_tokens: Int64Array) -> float | None:
    """Share of the prompt tokens of admitted requests that their first admission found cached; None without any."""
    total = int(prompt_tokens.sum())
    return int(cached_tokens.sum()) / total if total else None


def normalised_latency_s(e2e_s: Float64Array, output_tokens: Int64Array) -> Float64Array:
    """End-to-end latency per output token (Orca, OSDI 2022, section 6)."""
    per_token: Float64Array = e2e_s / np.maximum(output_tokens, 1)
    return per_token
