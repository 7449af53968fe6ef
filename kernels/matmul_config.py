"""Which of the two matmul kernels runs a shape, and with which tiles.

A configuration that names ``splits`` is one of ``pointer_tiles``, one that names ``store_n`` of ``tma_tiles``.
"""

from typing import Literal

from kernels.launch import LaunchConfig

PROCESSORS = {80: 108, 90: 132, 100: 148}
"""Multiprocessors of A100, H100/H200 and B200 (NVIDIA's architecture whitepapers, recalled)."""
FAST_SUM_K = 4096
"""Up to this k, fp8 products are summed by the tensor cores alone; longer sums are promoted to float32 on the way."""

Items = Literal["16-bit", "float32", "int8", "fp8", "fp8 by block", "int8 by block"]
"""What is multiplied, and how it is scaled."""


def by_tma(config: LaunchConfig) -> bool:
    """Whether a configuration is one of ``tma_tiles``."""
    return "store_n" in config.tiles


def matmul_config(m: int, n: int, k: int, items: Items, capability: int) -> LaunchConfig:
    """The configuration for ``a [m, k] @ weight [n, k].T``."""
    if items == "float32":
        return pointer_config(32, 64, 32, num_warps=4, num_stages=2)
    width = 64 if items == "16-bit" else 128
    if k % 16:
        return pointer_config(64, 64, 32, num_warps=4, num_stages=2)  # no wide loads: tiles that need few registers
    processors = PROCESSORS[max((known for known in PROCESSORS if known <= capability), default=80)]
    if m <= 64:
        return _few_rows(m, n, k, items, processors)
    tiles = _cdiv(m, 128) * _cdiv(n, 128)
    if capability >= 90 and n % 16 == 0 and k > 0 and 4 * tiles >= 3 * processors:
        return _many_rows(m, n, k, items, processors, capability)
    block_n = 64 if items.endswith("by block") else 128
    splits = _splits(tiles * 128 // block_n, k, 4 * width, processors)
    stages = 4 if capability >= 90 else 3
    return pointer_config(128, block_n, width, splits, num_warps=8, num_stages=stages, promote=items == "fp8")


def _many_rows(m: int, n: int, k: int, items: Items, processors: int, capability: int) -> LaunchConfig:
    """Tiles as large as registers hold, unless they would leave processors idle in the last of their waves."""
    width = 64 if items == "16-bit" else 128
    promote = items == "fp8" and k > FAST_SUM_K and capability == 90
    one_sum = items in ("16-bit", "fp8") and not promote
    wide_waves, waves = (_cdiv(_cdiv(m, 128) * _cdiv(n, block_n), processors) for block_n in (256, 128))
    block_n = 256 if one_sum and 2 * wide_waves <= 1.1 * waves else 128
    return tma_config(128, block_n, width, store_n=128, num_warps=8, num_stages=4, promote=promote)


def _few_rows(m: int, n: int, k: int, items: Items, processors: int) -> LaunchConfig:
    """Narrow tiles over long rows of the weight: what counts is bytes in flight."""
    block_m = max(16, 1 << (m - 1).bit_length())
    block_n = 32 if block_m <= 32 else 64
    block_k = 128
    if not items.endswith("by block"):
        block_k = (512 if block_m <= 32 else 256) // (2 if items == "16-bit" else 1)
    splits = _splits(_cdiv(n, block_n), k, 4 * block_k, processors)
    return pointer_config(block_m, block_n, block_k, splits, num_warps=4, num_stages=4, promote=items == "fp8")


def _splits(tiles: int, k: int, least_k: int, processors: int) -> int:
    """Parts of k, as a power of two, for which not many more programs than processors run, over ``least_k`` or more."""
    splits = 1
    while 2 * splits * tiles <= processors * 1.25 and 2 * splits * least_k <= k:
        splits *= 2
    return splits


def _cdiv(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)


def pointer_config(
    block_m: int,
    block_n: int,
    block_k: int,
    splits: int = 1,
    *,
    num_warps: int,
    num_stages: int,
    group_m: int = 8,
    promote: bool = False,
) -> LaunchConfig:
    """A configuration of ``pointer_tiles``."""
    tiles = {"block_m": block_m, "block_n": block_n, "block_k": block_k, "group_m": group_m}
    return LaunchConfig({**tiles, "splits": splits, "promote": promote}, num_warps, num_stages)


def tma_config(
    block_m: int,
    block_n: int,
    block_k: int,
    store_n: int,
    *,
    num_warps: int,
    num_stages: int,
    group_m: int = 8,
    promote: bool = False,
) -> LaunchConfig:
    """A configuration of ``tma_tiles``."""
    tiles = {"block_m": block_m, "block_n": block_n, "block_k": block_k, "group_m": group_m}
    return LaunchConfig({**tiles, "store_n": store_n, "promote": promote}, num_warps, num_stages)
