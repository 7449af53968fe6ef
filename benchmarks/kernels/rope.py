"""Rotary embedding with the write to the paged cache."""

from functools import partial
from itertools import product

import torch

from benchmarks.kernels.row_shapes import NAMES, TOKENS, row_case
from kernels.case import Case, Launch, Sweep
from kernels.launch import LaunchConfig
from kernels.rope import launch_config, rotate_and_write

BLOCK = 16


def _rotate(
    device: torch.device, tokens: int, heads: int, kv_heads: int, head_dim: int, cache: torch.dtype, interleaved: bool
) -> Launch:
    projected = torch.randn(tokens, heads + 2 * kv_heads, head_dim, device=device).to(torch.bfloat16)
    queries, keys, values = projected.split([heads, kv_heads, kv_heads], dim=1)
    positions = torch.arange(tokens, device=device)
    blocks = -(-tokens // BLOCK)
    slots = torch.randperm(blocks, device=device).repeat_interleave(BLOCK)[:tokens] * BLOCK + positions % BLOCK
    cos_sin = torch.randn(tokens, head_dim, device=device)
    shape = (blocks, kv_heads, BLOCK)
    caches = [torch.zeros((*shape, head_dim), device=device).to(cache) for _ in range(2)]
    scaled = cache.itemsize == 1
    scales = [torch.zeros(shape, device=device) if scaled else None for _ in range(2)]
    inputs = (queries, keys, values, positions, cos_sin, slots, *caches, *scales, interleaved)
    return lambda config: lambda: rotate_and_write(*inputs, config=config)


def _shape(tokens: int, cache: torch.dtype, heads: int = 32, interleaved: bool = False) -> dict:
    return {
        "tokens": tokens, "heads": heads, "kv_heads": 8, "head_dim": 128, "cache": cache, "interleaved": interleaved
    }  # fmt: skip


def _case(**shape) -> Case:
    tokens, heads, kv_heads, head_dim = (shape[name] for name in ("tokens", "heads", "kv_heads", "head_dim"))
    cache = shape["cache"]
    read = (heads + 2 * kv_heads) * head_dim * 2 + head_dim * 4 + 16
    scales = 8 * kv_heads if cache.itemsize == 1 else 0
    written = (heads + kv_heads) * head_dim * 2 + 2 * kv_heads * head_dim * cache.itemsize + scales
    return row_case(
        "rotate_and_write",
        f"bf16 to {NAMES[cache]}{' interleaved' if shape['interleaved'] else ''}",
        {name: shape[name] for name in ("tokens", "heads", "kv_heads", "head_dim")},
        partial(_rotate, **shape),
        tokens * (read + written),
        tokens * (heads + kv_heads) * head_dim * 4,
        cache,
    )


def cases(toy: bool) -> list[Case]:
    """Heads as of 8B and 70B models, every type of cache, both layouts of pairs."""
    if toy:
        return [_case(**_shape(3, torch.int8))]
    caches = (torch.bfloat16, torch.int8, torch.float8_e4m3fn)
    return [
        *(_case(**_shape(tokens, cache, heads)) for tokens, cache, heads in product(TOKENS, caches, (32, 64))),
        *(_case(**_shape(tokens, torch.bfloat16, interleaved=True)) for tokens in TOKENS),
    ]


def sweeps() -> list[Sweep]:
    """Heads a program, and warps."""
    candidates = [
        LaunchConfig({"tile_heads": heads, "block": 128}, warps, 1)
        for heads, warps in product((1, 2, 4, 8, 16, 32), (1, 2, 4, 8))
        if heads * 128 // (32 * warps) >= 2
    ]
    shapes = [
        _shape(4096, torch.bfloat16), _shape(64, torch.bfloat16), _shape(4096, torch.float8_e4m3fn),
        _shape(4096, torch.bfloat16, interleaved=True),
    ]  # fmt: skip
    return [
        Sweep(_case(**shape), candidates, partial(_rotate, **shape), launch_config(128, shape["tokens"]))
        for shape in shapes
    ]
