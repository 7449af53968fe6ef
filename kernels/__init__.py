"""The kernels of the live engine, each beside its torch reference.

``kernels.silu_mul(...)`` and the like run on any device: by Triton where the tensors are on a GPU (or Triton's
interpreter is on), by the reference on a CPU. ``OPERATIONS`` names them all.
"""

from collections.abc import Callable
from typing import Any

from kernels.elementwise import silu_mul
from kernels.errors import UnknownOperationError
from kernels.expert_gemms import expert_down, expert_gate_up
from kernels.expert_routing import route_top_k
from kernels.expert_sorting import sort_tokens_by_expert
from kernels.flash_prefill import flash_prefill
from kernels.gemm import gemm
from kernels.kv_copy import copy_blocks, gather_blocks, scatter_blocks
from kernels.mixed_attention import mixed_attention
from kernels.mla_decode import mla_decode
from kernels.moe import moe, sum_copies
from kernels.paged_decode import paged_decode
from kernels.quantise_rows import quantise_per_group, quantise_per_token
from kernels.rms_norm import add_rms_norm, rms_norm
from kernels.rope import rotate_and_write
from kernels.sampling import sample
from kernels.speculative import verify_drafts
from kernels.token_probabilities import token_probabilities
from kernels.w4a16 import w4a16
from kernels.w8a8 import w8a8

# All are imported here, since those named like their modules would otherwise be hidden behind them.
OPERATIONS: dict[str, Callable[..., Any]] = {
    operation.__name__: operation
    for operation in (
        add_rms_norm,
        copy_blocks,
        expert_down,
        expert_gate_up,
        flash_prefill,
        gather_blocks,
        gemm,
        mixed_attention,
        mla_decode,
        moe,
        paged_decode,
        quantise_per_group,
        quantise_per_token,
        rms_norm,
        rotate_and_write,
        route_top_k,
        sample,
        scatter_blocks,
        silu_mul,
        sort_tokens_by_expert,
        sum_copies,
        token_probabilities,
        verify_drafts,
        w4a16,
        w8a8,
    )
}
"""Every operation by its name."""

__all__ = ["OPERATIONS", *OPERATIONS]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnknownOperationError(name, OPERATIONS)
