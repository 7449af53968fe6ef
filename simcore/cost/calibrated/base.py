"""The work of a kernel and the time it would take at flat rates: the physics that a fit corrects by a smooth ratio.

Between measured shapes the ratio of latency to this base is interpolated, not latency itself: it varies little, so
neither the interpolation between logarithms nor the distance to a measured shape costs much accuracy.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

ELEMENT_BYTES = {
    "fp32": (4.0, 4.0),
    "bf16": (2.0, 2.0),
    "fp8": (1.0, 1.0),
    "fp8-block": (1.0, 1.0),
    "int8": (1.0, 1.0),
    "nvfp4": (0.5625, 0.5625),
    "int4": (0.53125, 2.0),
    "mxfp4": (0.53125, 2.0),
    "mxfp4-mxfp8": (0.53125, 1.03125),
    "mxfp4-marlin": (0.53125, 2.0),
    "fp8-block-deepgemm": (1.0, 1.0),
}
"""Bytes per weight and per activation read, scales included (groups of 16, 32 or 128). Where an engine has kernels of
one dtype that differ much, the name tells which: Marlin's take mxfp4 to 16 bits before they multiply."""
KV_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp8": 1.0}

Number = Any
"""A float or an array of them: every function here works on both."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Flat rates of a family of kernels, fitted."""

    floor_s: float
    flops_per_s: float
    bytes_per_s: float

    def seconds(self, flops: Number, moved_bytes: Number) -> Number:
        """A floor, then the longer of arithmetic and memory traffic (Williams et al., CACM 2009)."""
        return self.floor_s + np.maximum(flops / self.flops_per_s, moved_bytes / self.bytes_per_s)


def gemm_work(dtype: str, tokens: Number, n: Number, k: Number) -> tuple[Number, Number]:
    """Floating-point operations and bytes of a (tokens, k) x (k, n) GEMM with 16-bit results."""
    weight, activation = ELEMENT_BYTES[dtype]
    return 2.0 * tokens * n * k, weight * n * k + activation * tokens * k + 2.0 * tokens * n


def attended_pairs(tokens: Number, prefix: Number, window: int) -> Number:
    """Pairs of a query of a chunk and a token it sees: all before it and itself, within its window (0 is none)."""
    if window == 0:
        return tokens * (prefix + 0.5 * (tokens + 1))
    growing = np.clip(window - prefix, 0, tokens)
    return growing * (prefix + 0.5 * (growing + 1)) + (tokens - growing) * window


def context_work(
    kv_dtype: str, heads: Number, kv_heads: Number, head_dim: Number, window: int, batch: Number, tokens: Number
) -> tuple[Number, Number]:
    """Attention of ``batch`` prompts of ``tokens`` tokens each."""
    moved = batch * tokens * head_dim * (4.0 * heads + 2.0 * kv_heads * KV_BYTES[kv_dtype])
    return 4.0 * heads * head_dim * batch * attended_pairs(tokens, 0.0, window), moved


def generation_work(
    kv_dtype: str, heads: Number, kv_heads: Number, head_dim: Number, batch: Number, context: Number, window: Number
) -> tuple[Number, Number]:
    """Attention of one new token of each of ``batch`` requests over the last ``window`` of ``context`` tokens each.

    Window 0 is none.
    """
    pairs = batch * np.where(np.equal(window, 0), context, np.minimum(context, window))
    moved = 2.0 * kv_heads * head_dim * KV_BYTES[kv_dtype] * pairs + 4.0 * heads * head_dim * batch
    return 4.0 * heads * head_dim * pairs, moved


def moe_work(
    dtype: str,
    tokens: Number,
    hidden: Number,
    intermediate: Number,
    experts_per_token: Number,
    experts: Number,
    tensor_parallel: Number,
    expert_parallel: Number,
) -> tuple[Number, Number]:
    """Gated experts of one rank: three matrices each; a token reaches each expert with equal probability."""
    weight, activation = ELEMENT_BYTES[dtype]
    width = intermediate / tensor_parallel
    held = experts / expert_parallel
    rows = tokens * experts_per_token / expert_parallel
    used = held * (1.0 - (1.0 - experts_per_token / experts) ** tokens)
    flops = 6.0 * hidden * width * rows
    return flops, 3.0 * hidden * width * weight * used + (activation * (hidden + width) + 2.0 * (hidden + width)) * rows
