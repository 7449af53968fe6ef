"""The experts of an MoE model: sort the tokens by expert, two grouped GEMMs, and the sum of each token's copies.

Copies are added up in order, by a kernel of their own rather than by atomic additions: equal inputs give equal outputs.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.expert_checks import check_experts
from kernels.expert_gemms import expert_down, expert_gate_up
from kernels.expert_launch import rows_per_tile
from kernels.expert_sorting import sort_tokens_by_expert
from kernels.launch import LaunchConfig, operation
from kernels.moe_reference import ExpertWeights, moe_reference


def sum_copies_reference(parts: torch.Tensor, copies_per_token: int, dtype: torch.dtype) -> torch.Tensor:
    """The sum of each token's copies: ``parts`` [parts, tokens * k, hidden] to [tokens, hidden] in ``dtype``."""
    _, copies, hidden = parts.shape
    return parts.double().sum(0).view(copies // copies_per_token, copies_per_token, hidden).sum(1).to(dtype)


@triton.jit
def _sum_copies(
    parts,
    out,
    tokens,
    hidden,
    copies_per_token: tl.constexpr,
    split_k: tl.constexpr,
    block: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * block + tl.arange(0, block)
    inside = columns < hidden
    total = tl.zeros((block,), tl.float32)
    for copy in tl.static_range(copies_per_token):
        for part in tl.static_range(split_k):
            row = (token + part * tokens) * copies_per_token + copy
            total += tl.load(parts + row * hidden + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + token * hidden + columns, total.to(out.dtype.element_ty), mask=inside)


_CONFIG = LaunchConfig({"block": 1024}, num_warps=4, num_stages=1)


@operation(sum_copies_reference)
def sum_copies(
    parts: torch.Tensor, copies_per_token: int, dtype: torch.dtype, *, config: LaunchConfig | None = None
) -> torch.Tensor:
    """The sum of each token's copies: ``parts`` [parts, tokens * k, hidden] to [tokens, hidden] in ``dtype``."""
    config = config or _CONFIG
    split_k, copies, hidden = parts.shape
    tokens = copies // copies_per_token
    out = torch.empty((tokens, hidden), dtype=dtype, device=parts.device)
    if tokens:
        _sum_copies[(tokens, triton.cdiv(hidden, config.tiles["block"]))](
            parts,
            out,
            tokens,
            hidden,
            copies_per_token=copies_per_token,
            split_k=split_k,
            **config.arguments(),
        )
    return out


def _check(x: torch.Tensor, experts: ExpertWeights, *_: Any, **__: Any) -> None:
    check_experts("moe", x, experts)


@operation(moe_reference, _check, strided=("x", "routing_weights", "expert_ids"))
def moe(
    x: torch.Tensor,
    experts: ExpertWeights,
    routing_weights: torch.Tensor,
    expert_ids: torch.Tensor,
    *,
    config: LaunchConfig | None = None,
) -> torch.Tensor:
    """The weighted sum, for each token of ``x`` [tokens, hidden], of the experts that it visits: [tokens, hidden].

    ``routing_weights`` fp32 and ``expert_ids`` int32 are [tokens, k]. A ``config`` says ``block_m``, for both GEMMs.
    Raises ``UnsupportedFormError`` for other types than fp16, bf16 and fp32, and for an activation that there is not.
    """
    block_m = config.tiles["block_m"] if config else rows_per_tile(expert_ids.numel(), experts.experts)
    order = sort_tokens_by_expert(expert_ids, experts.experts, block_m)
    parts = expert_down(expert_gate_up(x, experts, order), experts, routing_weights, order)
    return sum_copies(parts, order.copies_per_token, x.dtype)


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernel, for ahead-of-time compilation."""
    configs = dict.fromkeys(CAPABILITIES, _CONFIG)
    forms = []
    for parts, out, copies_per_token, split_k in (
        ("bf16", "bf16", 8, 1),
        ("fp16", "fp16", 2, 1),
        ("fp32", "bf16", 2, 8),
    ):
        types = {"parts": f"*{parts}", "out": f"*{out}", "tokens": "i32", "hidden": "i32"}
        constants = {"copies_per_token": copies_per_token, "split_k": split_k}
        form = f"{out} k={copies_per_token} parts={split_k}"
        forms.append(CompiledForm(_sum_copies, form, types, constants, configs, ("hidden",)))
    return forms
