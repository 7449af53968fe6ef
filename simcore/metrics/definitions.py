"""The exact meaning of every metric; whatever shows a number takes its name, unit and meaning from here.

A new metric is a row of ``METRICS``, those of resources and tenants in ``resources.py``: the summary, the terminal,
reports, comparisons and documents read it.

A request with several samples is one: its first token is that of any sample, its last that of all, its TPOT the mean of
theirs and its output all of theirs; gaps are those of each sample, and of the prompt so much was found cached as by the
sample that found least.

Latencies are taken over the requests that arrived in the measured window and have them by the end of the run, gaps over
those that end in it. Percentiles interpolate linearly between order statistics. All arrays are one element per request,
in seconds, NaN where undefined.
"""

from collections.abc import Callable

import numpy as np

from simcore.core.clock import NS_PER_S
from simcore.core.request import UNSET
from simcore.core.result import Columns
from simcore.metrics import rates
from simcore.metrics.arrays import Float64Array, Int64Array
from simcore.metrics.energy import FIGURES as ENERGY
from simcore.metrics.metric import SHARE, Figure, Latency, Rate
from simcore.metrics.resources import RESOURCES

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


def normalised_latency_s(requests: Columns) -> Float64Array:
    """End-to-end latency per output token (Orca, OSDI 2022, section 6)."""
    per_token: Float64Array = requests["e2e_s"] / np.maximum(requests["output_tokens"], 1)
    return per_token


def _column(name: str) -> Callable[[Columns], Float64Array]:
    def of_requests(requests: Columns) -> Float64Array:
        values: Float64Array = requests[name]
        return values

    return of_requests


LATENCIES = (
    Latency(
        name="ttft_s",
        short="TTFT",
        title="Time to first token",
        definition="arrival to first output token, queueing included",
        of_requests=_column("ttft_s"),
        compared=("mean", "p99"),
        drawn=True,
        banded=True,
    ),
    Latency(
        name="tpot_s",
        short="TPOT",
        title="Time per output token",
        definition="first to last token, over output tokens − 1; needs 2 output tokens",
        of_requests=_column("tpot_s"),
        compared=("mean", "p99"),
        in_ms=True,
        drawn=True,
        banded=True,
    ),
    Latency(
        name="itl_s",
        short="ITL",
        title="Inter-token latency",
        definition="gap between two successive tokens of a request, over all gaps",
        of_requests=None,
        in_ms=True,
    ),
    Latency(
        name="e2e_s",
        short="E2E",
        title="End-to-end latency",
        definition="arrival to last token",
        of_requests=_column("e2e_s"),
        compared=("mean", "p99"),
        drawn=True,
        banded=True,
    ),
    Latency(
        name="queue_s",
        short="queue",
        title="Time in queue",
        definition="arrival to the first step in which the request takes part",
        of_requests=_column("queue_s"),
    ),
    Latency(
        name="normalised_latency_s",
        short="per token",
        title="Normalised latency",
        definition="E2E over output tokens",
        of_requests=normalised_latency_s,
        compared=("mean",),
        in_ms=True,
    ),
)

FIGURES = (
    Rate(
        name="offered_requests_per_s",
        short="offered",
        title="Offered rate",
        definition="requests that arrived, per second of the window of arrivals",
        unit="requests/s",
        lower_is_better=False,
        place="throughput.offered_requests_per_s",
        amounts=rates.arrivals,
        over_arrivals=True,
        line="throughput",
        wording="{} requests/s offered",
    ),
    Rate(
        name="served_requests_per_s",
        short="served",
        title="Served rate",
        definition="requests that finished in the window of arrivals, per second of it",
        unit="requests/s",
        lower_is_better=False,
        place="throughput.served_requests_per_s",
        amounts=rates.finished,
        over_arrivals=True,
        line="throughput",
        wording="{} served",
    ),
    Rate(
        name="requests_per_s",
        short="throughput",
        title="Finished requests",
        definition="requests that finished in the measured window, its drain included, per second of it",
        unit="requests/s",
        lower_is_better=False,
        place="throughput.requests_per_s",
        amounts=rates.finished,
        line="throughput",
        card=True,
        compared=True,
        banded=True,
    ),
    Rate(
        name="output_tokens_per_s",
        short="output tokens",
        title="Output tokens",
        definition="output tokens that came in the measured window, those of unfinished requests too, per second of it",
        unit="tokens/s",
        lower_is_better=False,
        place="throughput.output_tokens_per_s",
        amounts=rates.output_tokens,
        line="throughput",
        wording="{} output tokens/s",
        card=True,
        banded=True,
    ),
    Rate(
        name="total_tokens_per_s",
        short="total tokens",
        title="Prompt and output tokens",
        definition="these, and the prompt tokens of requests whose first token came in the window, per second of it",
        unit="tokens/s",
        lower_is_better=False,
        place="throughput.total_tokens_per_s",
        amounts=rates.total_tokens,
        line="throughput",
        wording="{} total tokens/s",
        banded=True,
    ),
    Rate(
        name="goodput_requests_per_s",
        short="goodput",
        title="Goodput",
        definition="requests that arrived in the window of arrivals and kept every limit, per second of it",
        unit="requests/s",
        lower_is_better=False,
        place="throughput.goodput_requests_per_s",
        amounts=rates.good_arrivals,
        over_arrivals=True,
        line="goodput",
        wording="{} requests/s met all objectives",
        card=True,
        compared=True,
        needs_slo=True,
    ),
    Figure(
        name="slo_attainment",
        short="SLO attainment",
        title="SLO attainment",
        definition="share of the requests that arrived in the measured window that kept every limit; "
        "undecided ones are left out",
        unit=SHARE,
        lower_is_better=False,
        place="throughput.slo_attainment",
        of_run=rates.attainment,
        line="goodput",
        wording="{:.2%} of requests",
        card=True,
        compared=True,
        needs_slo=True,
    ),
    Figure(
        name="prefix_hit_rate",
        short="prefix hits",
        title="Prefix hit rate",
        definition="prompt tokens found cached over prompt tokens, first admission only; recomputation never counts",
        unit=SHARE,
        lower_is_better=False,
        place="kv.prefix_hit_rate",
        line="KV cache",
        wording="{:.1%} of prompt tokens found cached",
        compared=True,
    ),
    Figure(
        name="preemptions",
        short="preemptions",
        title="Preemptions",
        definition="times that a request was preempted, whole run; as in vLLM, also after its last token",
        unit="preemptions",
        place="preemptions.total",
        per_request=lambda requests: requests["preemptions"].astype(np.float64),
        line="KV cache",
        wording="{:,} preemptions",
        card=True,
        compared=True,
    ),
    Figure(
        name="rejected",
        short="rejected",
        title="Rejected requests",
        definition="requests turned away on arrival, dropped when memory ran short, or given up by their clients",
        unit="requests",
        place="counts.rejected",
        per_request=lambda requests: (requests["state"] == "rejected").astype(np.float64),
        compared=True,
    ),
    Figure(
        name="unfinished",
        short="unfinished",
        title="Unfinished requests",
        definition="requests that the end of the run cut off",
        unit="requests",
        place="counts.unfinished",
        per_request=lambda requests: (requests["state"] == "unfinished").astype(np.float64),
    ),
)

METRICS: tuple[Latency | Figure, ...] = (*LATENCIES, *FIGURES, *RESOURCES, *ENERGY)
