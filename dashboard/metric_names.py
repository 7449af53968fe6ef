"""What the report calls each latency, in words; the definitions stand in ``simcore.metrics.definitions``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricName:
    """``short`` is the field's abbreviation, ``title`` the name spelt out, ``meaning`` one clause on what it spans."""

    short: str
    title: str
    meaning: str


METRIC_NAMES = {
    "ttft_s": MetricName("TTFT", "Time to first token", "arrival to first output token, queueing included"),
    "tpot_s": MetricName(
        "TPOT", "Time per output token", "first to last token, over output tokens − 1; needs 2 output tokens"
    ),
    "itl_s": MetricName("ITL", "Inter-token latency", "gap between two successive tokens of a request, over all gaps"),
    "e2e_s": MetricName("E2E", "End-to-end latency", "arrival to last token"),
    "queue_s": MetricName("Queue", "Time in queue", "arrival to first scheduled"),
    "normalised_latency_s": MetricName("Normalised", "Normalised latency", "E2E over output tokens"),
}

PERCENTILE_NAMES = {"p50": "P50", "p90": "P90", "p95": "P95", "p99": "P99", "p999": "P99.9"}
