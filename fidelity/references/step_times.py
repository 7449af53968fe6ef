"""Single steps as the artifact of Sarathi-Serve measured them (Agrawal et al., OSDI 2024)."""

import re
from pathlib import Path
from typing import Any

from fidelity.case import Case, Refusal
from fidelity.known_names import known_names
from fidelity.references.published import Figure, read_figures

CONTEXT_TOKENS = 1024
"""Context of the decoding requests, which is not stated; prompts of the experiments are about as long."""

_STEP = re.compile(r"(\d+) prefill \+ (\d+) decode tokens")
_UNIT_S = {"s": 1.0, "ms": 1e-3}


def step_times(path: Path) -> list[Case | Refusal]:
    """One case per step; refusals for whole prefills in chunks, whose model the file leaves open."""
    return [_case(figure) for figure in read_figures(path)]


def _case(figure: Figure) -> Case | Refusal:
    names = known_names()
    found = _STEP.search(figure.load)
    labels = {"step": found[0] if found else figure.load, "model": figure.model, "accelerator": figure.gpu}
    if figure.model not in names.models:
        return Refusal(figure.load, labels, "a model that the file leaves open")
    if found is None or figure.unit not in _UNIT_S:
        return Refusal(figure.load, labels, "no single step")
    prompt_tokens, decoding = int(found[1]), int(found[2])
    document = {
        "model": names.models[figure.model],
        "engine": "vllm-v1",
        "cluster": {
            "accelerator": names.accelerators[figure.gpu],
            "tensor_parallel": figure.whole(figure.tensor_parallel, "tp"),
        },
        "precision": {"weights": "fp16"},
        "memory": {"prefix_caching": False},
        "scheduler": {"batching": {"max_batched_tokens": max(prompt_tokens + decoding, decoding * CONTEXT_TOKENS)}},
        "workload": {"streams": _streams(prompt_tokens, decoding)},
    }
    measured = {f"step_s:{prompt_tokens}+{decoding}": figure.value * _UNIT_S[figure.unit]}
    return Case(figure.load, labels, document, measured)


def _streams(prompt_tokens: int, decoding: int) -> list[dict[str, Any]]:
    """Requests that decode all along, and one whose prompt meets them after ten seconds."""
    streams = []
    if decoding:
        streams.append(_stream(decoding, 1e4, CONTEXT_TOKENS, output_tokens=64 if not prompt_tokens else 1024))
    if prompt_tokens:
        streams.append(_stream(1, 0.1, prompt_tokens, output_tokens=1))
    return streams


def _stream(requests: int, rate_per_s: float, prompt_tokens: int, output_tokens: int) -> dict[str, Any]:
    return {
        "requests": requests,
        "arrivals": {"name": "constant", "rate_per_s": rate_per_s},
        "prompt_tokens": {"name": "fixed", "tokens": prompt_tokens},
        "output_tokens": {"name": "fixed", "tokens": output_tokens},
    }
