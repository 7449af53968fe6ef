"""How decode attention is launched: tiles, warps, and into how many parts contexts are split."""

import torch
import triton

from kernels.launch import LaunchConfig
from kernels.split_reduction import choose_splits

_MOST_ROWS = 32  # query heads in one program
_MOST_PROGRAMS = 3  # of a multiprocessor at once: more were not found to be faster
_SHARED_BYTES = 227 * 2**10  # of a multiprocessor of sm_90 and sm_100
_LEAST_TILES = 2  # of a split
# What is lost while a program starts, and while the reduction takes in one more part, in bytes that might be read
# meanwhile: slopes of measured times over numbers of splits (docs/results/kernels.md).
_START_BYTES = 24_000
_PART_BYTES = 600_000


def launch_config(
    cache: torch.dtype, head_dim: int, group: int, *, capped: bool = False, chip: int = 90
) -> LaunchConfig:
    """The shipped configuration for caches of a type and head dimension, and so many query heads to a KV head."""
    padded_dim, rows = triton.next_power_of_2(head_dim), rows_of(group)
    if capped:  # where the usual tiles would spill
        form = (cache.itemsize, padded_dim, rows)
        if (chip < 90 and form in ((2, 128, 32), (1, 64, 16), (1, 64, 32))) or (chip >= 100 and form == (1, 256, 16)):
            return LaunchConfig({"tile_tokens": 64}, num_warps=4, num_stages=3)
    if cache == torch.float32:
        return LaunchConfig({"tile_tokens": 16}, num_warps=4, num_stages=2)
    if cache.itemsize == 1:
        if padded_dim == 256:
            return LaunchConfig({"tile_tokens": 32}, num_warps=8 if rows > 16 else 4, num_stages=3)
        return LaunchConfig({"tile_tokens": 64}, num_warps=8 if rows > 16 else 2, num_stages=3)
    if padded_dim == 256 or rows > 16:
        return LaunchConfig({"tile_tokens": 32}, num_warps=4, num_stages=3)
    return LaunchConfig({"tile_tokens": 64}, num_warps=4, num_stages=4)


def default_splits(
    batch: int, heads: int, kv_heads: int, head_dim: int, cache: torch.dtype, tokens: int, config: LaunchConfig,
    processors: int,
) -> int:  # fmt: skip
    """Into how many parts to split contexts of so many ``tokens``, for a launch on so many multiprocessors."""
    group = heads // kv_heads
    token_bytes = 2 * head_dim * cache.itemsize
    tile_tokens = config.tiles["tile_tokens"]
    buffered = (config.num_stages - 1) * tile_tokens * token_bytes + 8 * 2**10
    slots = processors * max(1, min(_MOST_PROGRAMS, _SHARED_BYTES // buffered))
    programs = batch * kv_heads * triton.cdiv(group, rows_of(group))
    work_bytes = batch * kv_heads * tokens * token_bytes
    most = tokens // (_LEAST_TILES * tile_tokens)
    partial_bytes = 4 * batch * heads * head_dim
    split_bytes = 2 * partial_bytes + programs * _START_BYTES + _PART_BYTES
    return choose_splits(programs, processors, slots, work_bytes, split_bytes, most)


def rows_of(group: int) -> int:
    """Query heads of a program: all of a KV head's, or 32 of them, in tiles that tensor cores take."""
    return min(_MOST_ROWS, max(16, int(triton.next_power_of_2(group))))
