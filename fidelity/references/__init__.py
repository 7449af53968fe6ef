"""Other public measurements, each turned into cases: what was run, and what it measured.

>>> from fidelity.references import REFERENCES
>>> [reference.title for reference in REFERENCES]  # doctest: +ELLIPSIS
['Prompt and token times...', ...]
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fidelity.case import Case, Refusal
from fidelity.references.offline_batches import offline_batches
from fidelity.references.rate_sweep import rate_sweep
from fidelity.references.step_times import step_times
from fidelity.references.throughput_maxima import throughput_maxima
from fidelity.references.whole_models import whole_models


@dataclass(frozen=True, slots=True)
class Reference:
    """One source: the file it is read from, below a data folder, and how.

    ``groups`` are the labels by which its errors are best shown. ``upper_bound`` tells measurements that a simulated
    figure should stay below rather than hit.
    """

    title: str
    file: str
    read: Callable[[Path], Sequence[Case | Refusal]]
    groups: tuple[str, ...]
    about: str
    upper_bound: bool = False


REFERENCES = (
    Reference(
        "Prompt and token times of whole models (splitwise-sim)",
        "profiles/splitwise-sim/perf_model.csv",
        whole_models,
        ("accelerator", "tensor_parallel", "batch"),
        "A batch of prompts that starts together on an idle server, then decodes: medians of the repetitions.",
    ),
    Reference(
        "Step times (Sarathi-Serve, OSDI 2024)",
        "measured/sarathi_ae.csv",
        step_times,
        ("step",),
        "Single steps of Yi-34B on two A100 PCIe joined by NVLink; the context of the decoding requests is not stated "
        "and taken as 1024 tokens.",
    ),
    Reference(
        "Offline batches (LLM-Inference-Bench)",
        "measured/llm_inference_bench_nvidia.csv",
        offline_batches,
        ("engine", "accelerator", "model", "tensor_parallel", "batch"),
        "A batch of equal prompts and outputs, all at once, until the last token. Engine versions are not stated.",
    ),
    Reference(
        "Request-rate sweep (inference-perf, KubeCon 2025)",
        "measured/inference_perf_kubecon_vllm_h100.csv",
        rate_sweep,
        ("variant", "load"),
        "Llama-3.1-8B on one H100 at a constant rate for 60 s; where the client could not keep up, its 440 "
        "connections.",
    ),
    Reference(
        "Maximum throughput (TensorRT-LLM)",
        "measured/trtllm_perf_overview.csv",
        throughput_maxima,
        ("accelerator", "model"),
        "All requests queued at once. The publisher left most options at their defaults and calls the figures no peak.",
        upper_bound=True,
    ),
)
