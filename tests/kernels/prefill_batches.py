"""Random batches for the prefill and the mixed attention kernel, poisoned wherever no sequence has a token."""

import math
from collections.abc import Sequence
from typing import Any

import torch


def batch(
    device: torch.device, dtype: torch.dtype, lengths: Sequence[int], heads: int, kv_heads: int, head_dim: int
) -> tuple[tuple[Any, ...], int]:
    """Arguments of ``flash_prefill`` up to the scale; tokens lie as in a fused projection, with more after the last."""
    tokens = sum(lengths)
    fused = torch.randn(tokens + 3, heads + 2 * kv_heads, head_dim, device=device).to(dtype)
    fused[tokens:] = math.nan
    q, k, v = fused.split((heads, kv_heads, kv_heads), dim=1)
    starts = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=torch.int32, device=device)
    return (q, k, v, starts, max(lengths), head_dim**-0.5), tokens


def paged_prefix(
    device: torch.device, dtype: torch.dtype, prefixes: Sequence[int], kv_heads: int, head_dim: int, block_size: int
) -> dict[str, Any]:
    """A cache whose blocks lie in any order; what no sequence holds is not-a-number where the type has one."""
    blocks = [-(-prefix // block_size) for prefix in prefixes]
    order = torch.randperm(sum(blocks) + 2)
    shape = (len(order), kv_heads, block_size, head_dim)
    cache: dict[str, Any] = {}
    quantised = dtype in (torch.int8, torch.float8_e4m3fn)
    for name in ("key", "value"):
        if dtype == torch.int8:
            cache[f"{name}_cache"] = torch.randint(-127, 128, shape, device=device, dtype=dtype)
        else:
            cache[f"{name}_cache"] = torch.randn(shape, device=device).to(dtype)
        if quantised:
            width = 60 if dtype == torch.int8 else 1
            cache[f"{name}_scales"] = (torch.rand(shape[:3], device=device) + 0.5) / width
    tables = torch.zeros(len(prefixes), max(*blocks, 1), dtype=torch.int32)
    unused = torch.ones(len(order), block_size, dtype=torch.bool)
    taken = iter(order.tolist())
    for sequence, count in enumerate(blocks):
        for index in range(count):
            block = next(taken)
            tables[sequence, index] = block
            unused[block, : prefixes[sequence] - index * block_size] = False
    for name in ("key", "value"):
        poisoned = cache[f"{name}_scales" if quantised else f"{name}_cache"]
        poisoned.transpose(1, 2)[unused.to(device)] = math.nan
    return cache | {
        "block_tables": tables.to(device),
        "prefix_lengths": torch.tensor(prefixes, dtype=torch.int32, device=device),
    }
