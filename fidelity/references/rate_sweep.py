"""A request-rate sweep of vLLM on one H100 (kubernetes-sigs/inference-perf, demos/kubecon-na-2025)."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from fidelity.case import Case, Refusal
from fidelity.known_names import known_names
from fidelity.references.published import Figure, read_figures
from simcore.core.errors import FileError

STAGE_S = 60
CONNECTIONS = 440
"""Of the client: 44 workers of at most 10 requests each (its config.yaml)."""

_KEYS = {
    "request_latency_mean": "e2e_s.mean",
    "request_latency_median": "e2e_s.p50",
    "request_latency_p99": "e2e_s.p99",
    "requests_per_sec": "requests_per_s",
}
"""What the client reports of token times looks halved, so it is left out."""
_RATES = re.compile(r"([\d.]+) req/s requested, ([\d.]+) sent")
_SLOTS = re.compile(r"max_num_seqs=(\d+)")
_KEPT_UP = 0.95


def rate_sweep(path: Path) -> list[Case | Refusal]:
    """One case per stage of each variant that is plain vLLM; the others are refused."""
    stages: defaultdict[tuple[str, str], list[Figure]] = defaultdict(list)
    for figure in read_figures(path):
        if figure.metric in _KEYS:
            variant, _, _ = figure.notes.partition(";")
            stages[variant, figure.load].append(figure)
    return [_case(variant, figures) for (variant, _), figures in stages.items()]


def _case(variant: str, figures: list[Figure]) -> Case | Refusal:
    names, first = known_names(), figures[0]
    rates, slots = _RATES.search(first.load), _SLOTS.search(first.notes)
    if rates is None:
        raise FileError(first.path, f"concurrency_or_rate is {first.load!r}, expected the rates", first.line)
    asked, sent = float(rates[1]), float(rates[2])
    kept_up = sent >= _KEPT_UP * asked
    labels = {"variant": variant, "load": f"{asked:g}/s" if kept_up else f"{CONNECTIONS} connections"}
    name = f"{variant} {first.load}"
    if slots is None or "no chunked prefill,no APC" not in first.notes:
        return Refusal(name, labels, f"variant {variant}")
    arrivals: dict[str, Any] = {"name": "constant", "rate_per_s": sent}
    if not kept_up:
        arrivals = {"name": "closed-loop", "concurrency": CONNECTIONS}
    document = {
        "model": names.models[first.model],
        "engine": "vllm-v1",
        "cluster": {"accelerator": names.accelerators[first.gpu]},
        "memory": {"prefix_caching": False},
        "scheduler": {"batching": {"max_running_requests": int(slots[1])}},
        "workload": {
            "requests": max(1, round(sent * STAGE_S)),
            "arrivals": arrivals,
            "prompt_tokens": {"name": "fixed", "tokens": round(float(first.prompt_tokens))},
            "output_tokens": {"name": "fixed", "tokens": round(float(first.output_tokens))},
        },
    }
    measured = {_KEYS[figure.metric]: figure.value for figure in figures}
    return Case(name, labels, document, measured)
