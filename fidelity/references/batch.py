"""The scenario of a batch that starts together on an idle server."""

from typing import Any


def batch_document(
    model: str,
    engine: str,
    accelerator: str,
    tensor_parallel: int,
    requests: int,
    lengths: tuple[int, int],
    weights: str = "bf16",
    concurrency: int | None = None,
) -> dict[str, Any]:
    """``requests`` of the same prompt and output length, all sent at once; no prefix is shared."""
    return {
        "model": model,
        "engine": engine,
        "cluster": {"accelerator": accelerator, "tensor_parallel": tensor_parallel},
        "memory": {"prefix_caching": False},
        "precision": {"weights": weights},
        "workload": {
            "requests": requests,
            "arrivals": {"name": "closed-loop", "concurrency": concurrency or requests},
            "prompt_tokens": {"name": "fixed", "tokens": lengths[0]},
            "output_tokens": {"name": "fixed", "tokens": lengths[1]},
        },
    }
