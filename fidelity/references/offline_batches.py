"""LLM-Inference-Bench: how long an offline batch takes (Chitty-Venkata et al., arXiv:2411.00136)."""

from pathlib import Path

from fidelity.case import Case, Refusal
from fidelity.known_names import known_names
from fidelity.references.batch import batch_document
from fidelity.references.published import Figure, read_figures

_ACCELERATORS = {"A100": "a100-sxm-40gb", "H100": "h100-sxm"}
"""The A100s of Polaris have 40 GB (recalled); which H100 it was is not stated."""


def offline_batches(path: Path) -> list[Case | Refusal]:
    """One case per batch latency; throughputs in the same file say the same and are passed over."""
    return [_case(figure) for figure in read_figures(path) if figure.metric == "batch_latency"]


def _case(figure: Figure) -> Case | Refusal:
    names = known_names()
    batch = figure.whole(figure.load.removeprefix("batch="), "concurrency_or_rate")
    labels = {
        "engine": names.engines.get(figure.engine, figure.engine),
        "model": names.models.get(figure.model, figure.model),
        "accelerator": _ACCELERATORS.get(figure.gpu, figure.gpu),
        "tensor_parallel": figure.tensor_parallel,
        "batch": str(batch),
        "lengths": f"{figure.prompt_tokens}/{figure.output_tokens}",
    }
    name = " ".join(labels.values())
    if figure.model not in names.models:
        return Refusal(name, labels, f"unknown model {figure.model}")
    if figure.engine not in names.engines:
        return Refusal(name, labels, f"unknown engine {figure.engine}")
    if figure.gpu not in _ACCELERATORS:
        return Refusal(name, labels, f"unknown accelerator {figure.gpu}")
    lengths = figure.whole(figure.prompt_tokens, "isl"), figure.whole(figure.output_tokens, "osl")
    ranks = figure.whole(figure.tensor_parallel, "tp")
    document = batch_document(labels["model"], labels["engine"], labels["accelerator"], ranks, batch, lengths)
    return Case(name, labels, document, {"makespan_s": figure.value})
