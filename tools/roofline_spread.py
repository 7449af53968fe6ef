"""Print how far roofline prices are from measured kernels: the quantiles that ``simcore/cost/assumptions.py`` states.

``python tools/roofline_spread.py``, about a minute. Kernels of shipped models are priced twice on every accelerator
that has a profile, at batch shapes inside the measured ranges, and the logarithm of roofline over measurement is
taken. Each combination of model, accelerator and ranks counts the same, and in it each kernel by the time that it
takes: being off by much over the smallest batches is no matter.
"""

import itertools
import sys
from collections import defaultdict
from collections.abc import Iterator
from math import log
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from simcore.build.simulation import Simulation  # noqa: E402
from simcore.core.errors import ServetwinError  # noqa: E402
from simcore.cost.calibrated.errors import LEVELS  # noqa: E402
from simcore.cost.step_cost import StepCost  # noqa: E402
from simcore.cost.term import Counted  # noqa: E402

ACCELERATORS = ("a100-sxm-80gb", "b200", "h100-sxm", "h200-sxm", "l40s", "rtx-4090", "rtx-pro-6000-blackwell")
MODELS = ("llama-3.1-8b", "llama-3.1-70b", "qwen3-32b", "mistral-7b")
RANKS = (1, 2, 4, 8)
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 8192)
"""Tokens of a step."""
CHUNKS = (512, 1024, 2048, 4096, 8192)
"""Tokens of a prompt."""
DECODES = ((1, 1024), (1, 16384), (16, 1024), (16, 8192), (128, 1024), (128, 4096))
"""Requests that decode and the context of each."""


def main() -> int:
    """Print the quantiles for each kind of kernels; returns the exit code."""
    errors: defaultdict[str, list[float]] = defaultdict(list)
    weights: defaultdict[str, list[float]] = defaultdict(list)
    for accelerator, model, ranks in itertools.product(ACCELERATORS, MODELS, RANKS):
        measured, roofline = (_cost(accelerator, model, ranks, profile) for profile in ("auto", "roofline"))
        if measured is None or roofline is None or measured.prices.profile is None:
            continue
        by_kind: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        for kind, theirs, ours in _pairs(measured, roofline):
            by_kind[kind].append((theirs, ours))
        for kind, pairs in by_kind.items():
            total = sum(theirs for theirs, _ in pairs)
            errors[kind] += [log(ours / theirs) for theirs, ours in pairs]
            weights[kind] += [theirs / total for theirs, _ in pairs]
    for kind, found in sorted(errors.items()):
        quantiles = np.quantile(found, LEVELS, weights=weights[kind], method="inverted_cdf")
        print(f"{kind}: {len(found)} points, quantiles {', '.join(f'{value:.2f}' for value in quantiles)}")
    return 0


def _cost(accelerator: str, model: str, ranks: int, profile: str) -> StepCost | None:
    document = {
        "model": model,
        "engine": "vllm-v1",
        "cluster": {"accelerator": accelerator, "tensor_parallel": ranks},
        "pricing": {"profile": profile},
        "memory": {"num_gpu_blocks": 100},
        "workload": {
            "requests": 1,
            "arrivals": {"name": "constant", "rate_per_s": 1},
            "prompt_tokens": {"name": "fixed", "tokens": 1},
            "output_tokens": {"name": "fixed", "tokens": 1},
        },
    }
    try:
        return Simulation.prepare(document, Path()).cost
    except ServetwinError:  # too large, or more ranks than work as one
        return None


def _pairs(measured: StepCost, roofline: StepCost) -> Iterator[tuple[str, float, float]]:
    """The kind of each kernel at each shape, what it takes as measured, and by roofline."""
    for term, assumed_term in zip(measured.token_terms, roofline.token_terms, strict=True):
        is_gemm = term.operator is not None and term.operator.shape is not None and term.tokens is Counted.OWN
        if is_gemm or term.name == "all_reduce":
            theirs, ours = term.price, assumed_term.price
            for tokens in (tokens for tokens in TOKENS if theirs.inside(tokens)):
                yield "matmul" if is_gemm else "collective", theirs.seconds(tokens), ours.seconds(tokens)
    for known, assumed in zip(measured.compiled_attention, roofline.compiled_attention, strict=True):
        context, generation = known.calibrated.context, known.calibrated.generation
        for tokens in CHUNKS:
            if context is not None and context.inside(tokens):
                chunk = [(tokens, 0)]
                yield "attention", known.chunks_ns(chunk, False), assumed.chunks_ns(chunk, False)
        for decoding, each in DECODES:
            total = decoding * each
            if generation is not None and generation.inside(decoding, total):
                yield (
                    "attention",
                    known.decodes_ns(decoding, total, False),
                    assumed.decodes_ns(decoding, total, False),
                )


if __name__ == "__main__":
    sys.exit(main())
