"""How the grouped GEMMs of experts are launched."""

import triton

from kernels.launch import LaunchConfig

_FEW_PROGRAMS = 264
_MAX_SPLIT = 8


def rows_per_tile(copies: int, experts: int) -> int:
    """The rows of a tile, for so many copies over so many experts: near what an expert has on average."""
    average = copies / max(1, min(experts, copies))
    return 16 if average <= 16 else 32 if average <= 32 else 64 if average <= 96 else 128


def gate_up_config(block_m: int, hidden: int, item_bytes: int, chip: int) -> LaunchConfig:
    """The launch of the first GEMM for tiles of ``block_m`` copies; ``block_n`` columns are as many gates and ups."""
    if item_bytes == 4:
        return _config(block_m, 32, 32, 1, num_warps=4, num_stages=2)
    if block_m <= 32:
        return _config(block_m, 64, _depth(hidden), 1, num_warps=4, num_stages=4)
    if block_m == 64:
        return _config(block_m, 64, 64, 4, num_warps=4, num_stages=3)
    return _config(block_m, 128 if chip >= 90 else 64, 64, 8, num_warps=8, num_stages=4 if chip >= 90 else 3)


def down_config(
    block_m: int, most_tiles: int, hidden: int, intermediate: int, item_bytes: int, chip: int
) -> LaunchConfig:
    """The launch of the second GEMM; the depth is split where there would be few programs."""
    if item_bytes == 4:
        return _config(block_m, 32, 32, 1, num_warps=4, num_stages=2, split_k=1)
    if block_m <= 32:
        split_k, programs = 1, most_tiles * triton.cdiv(hidden, 64)
        while programs * split_k < _FEW_PROGRAMS and intermediate >= 1024 * split_k and split_k < _MAX_SPLIT:
            split_k *= 2
        return _config(block_m, 64, _depth(intermediate), 1, num_warps=4, num_stages=3, split_k=split_k)
    if block_m == 64:
        return _config(block_m, 128, 64, 4, num_warps=8, num_stages=4, split_k=1)
    if chip >= 90:
        return _config(block_m, 256, 64, 8, num_warps=8, num_stages=4, split_k=1)
    return _config(block_m, 128, 64, 8, num_warps=8, num_stages=3, split_k=1)


def _depth(k: int) -> int:
    return 128 if k % 128 == 0 else 64


def _config(
    block_m: int, block_n: int, block_k: int, group_m: int, *, num_warps: int, num_stages: int, **more: int
) -> LaunchConfig:
    tiles = {"block_m": block_m, "block_n": block_n, "block_k": block_k, "group_m": group_m, **more}
    return LaunchConfig(tiles, num_warps, num_stages)
