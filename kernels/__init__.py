"""The kernels of the live engine, each beside its torch reference.

``kernels.silu_mul(...)`` and the like run on any device: by Triton where the tensors are on a GPU (or Triton's
interpreter is on), by the reference on a CPU. ``OPERATIONS`` names them all.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from kernels.errors import UnknownOperationError

OPERATIONS: dict[str, str] = {
    "add_rms_norm": "kernels.rms_norm",
    "copy_blocks": "kernels.kv_copy",
    "expert_down": "kernels.expert_gemms",
    "expert_gate_up": "kernels.expert_gemms",
    "flash_prefill": "kernels.flash_prefill",
    "gather_blocks": "kernels.kv_copy",
    "gemm": "kernels.gemm",
    "mla_decode": "kernels.mla_decode",
    "moe": "kernels.moe",
    "paged_decode": "kernels.paged_decode",
    "quantise_per_group": "kernels.quantise_rows",
    "quantise_per_token": "kernels.quantise_rows",
    "rms_norm": "kernels.rms_norm",
    "rotate_and_write": "kernels.rope",
    "route_top_k": "kernels.expert_routing",
    "sample": "kernels.sampling",
    "scatter_blocks": "kernels.kv_copy",
    "mixed_attention": "kernels.mixed_attention",
    "silu_mul": "kernels.elementwise",
    "sort_tokens_by_expert": "kernels.expert_sorting",
    "sum_copies": "kernels.moe",
    "token_probabilities": "kernels.token_probabilities",
    "verify_drafts": "kernels.speculative",
    "w4a16": "kernels.w4a16",
    "w8a8": "kernels.w8a8",
}
"""Each operation and the module that holds it."""

__all__ = ["OPERATIONS"]


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_"):
        raise AttributeError(name)
    if name not in OPERATIONS:
        raise UnknownOperationError(name, OPERATIONS)
    function: Callable[..., Any] = getattr(import_module(OPERATIONS[name]), name)
    return function
