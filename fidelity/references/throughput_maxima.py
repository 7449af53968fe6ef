"""TensorRT-LLM's published maximum throughput (docs/source/performance/perf-overview.md)."""

import re
from pathlib import Path
from typing import Any

from fidelity.case import Case, Refusal
from fidelity.known_names import known_names
from fidelity.references.batch import batch_document
from fidelity.references.published import Figure, read_figures
from fidelity.run_names import is_moe
from simcore.build.simulation import Simulation
from simcore.core.errors import CapacityError

_REQUESTS = {(128, 2048): 3000, (128, 4096): 1500, (1000, 2000): 1500, (2048, 128): 3000, (2048, 2048): 1500}
_REQUESTS |= {(5000, 500): 1500, (1000, 1000): 3000, (500, 2000): 3000, (20000, 2000): 1000}
"""Requests queued, by prompt and output tokens (the same document)."""
_ENOUGH = 3000
"""Requests queued where the document states more, or nothing: as many fill the steps for most of the run."""
_MOST_SLOTS = 2048
"""The default of ``max_batch_size``."""
_RANKS = re.compile(r"TP(\d+)")
_METRICS = ("total_output_throughput", "output_throughput_per_gpu")


def throughput_maxima(path: Path) -> list[Case | Refusal]:
    """One case per published maximum."""
    return [_case(figure) for figure in read_figures(path)]


def _case(figure: Figure) -> Case | Refusal:
    names = known_names()
    ranks = _RANKS.fullmatch(figure.tensor_parallel)
    labels = {
        "model": names.models.get(figure.model, figure.model),
        "accelerator": names.accelerators.get(figure.gpu, figure.gpu),
        "tensor_parallel": figure.tensor_parallel.removeprefix("TP"),
        "lengths": f"{figure.prompt_tokens}/{figure.output_tokens}",
    }
    name = " ".join(labels.values())
    if figure.model not in names.models:
        return Refusal(name, labels, f"unknown model {figure.model}")
    if figure.gpu not in names.accelerators:
        return Refusal(name, labels, f"unknown accelerator {figure.gpu}")
    if ranks is None:
        return Refusal(name, labels, "other parallelism than by tensors")
    if figure.precision != "FP8":
        return Refusal(name, labels, f"precision {figure.precision}")
    if is_moe(labels["model"]):
        return Refusal(name, labels, "experts that may be parallel, which is not stated")
    if figure.metric not in _METRICS:
        return Refusal(name, labels, f"unknown metric {figure.metric}")
    lengths = figure.whole(figure.prompt_tokens, "isl"), figure.whole(figure.output_tokens, "osl")
    requests = _REQUESTS.get(lengths, _ENOUGH)
    document = batch_document(
        labels["model"], "trtllm", labels["accelerator"], int(ranks[1]), requests, lengths, weights="fp8"
    )
    document["precision"]["kv_cache"] = "fp8"  # as NVIDIA's FP8 checkpoints are quantised
    try:
        # Its benchmark sets a token budget, which is not stated, and serves prompts that the default rejects.
        slots = _slots(document, sum(lengths))
        document["scheduler"] = {"batching": {"max_running_requests": slots, "reject_longer": False}}
    except CapacityError:
        return Refusal(name, labels, "the model does not fit, as memory is counted here")
    devices = int(ranks[1]) if figure.metric == "output_throughput_per_gpu" else 1
    return Case(name, labels, document, {"output_tokens_per_s": figure.value * devices})


def _slots(document: dict[str, Any], tokens: int) -> int:
    """Requests whose whole length memory can hold at once: all that TensorRT-LLM admits, as it never evicts one."""
    prepared = Simulation.prepare(document, Path())
    blocks_per_request = -(-tokens // prepared.scenario.memory.block_size_tokens)
    return max(1, min(_MOST_SLOTS, prepared.total_blocks // blocks_per_request))
