"""Which of the two matmul kernels runs a shape, and with which tiles.

A configuration that names ``splits`` is one of ``pointer_tiles``, one that names ``store_n`` of ``tma_tiles``.
"""

from typing import Literal

from kernels.launch import LaunchConfig

PROCESSORS = {80: 108, 90: 132, 100: 148}
"""Multiprocessors of A100, H100/H200 and B200 (NVIDIA's architecture whitepapers, recalled)."""
FAST_SUM_K = 1024
"""Up to this k, sm_90 sums fp8 products in tensor cores alone (matmul_tiles): an estimate, of errors below 2e-3."""
_SHARED_BYTES = 227 * 1024
_RESIDENT_WARPS = 12  # of 168 registers a thread

Items = Literal["16-bit", "float32", "int8", "fp8", "fp8 by block", "int8 by block"]
"""What is multiplied, and how it is scaled."""


def by_tma(config: LaunchConfig) -> bool:
    """Whether a configuration is one of ``tma_tiles``."""
    return "store_n" in config.tiles


def resident_programs(config: LaunchConfig, item_bytes: int, out_bytes: int) -> int:
    """How many programs of ``tma_tiles`` a multiprocessor should run at once, by shared memory and registers."""
    tiles = config.tiles
    stage_bytes: int = (tiles["block_m"] + tiles["block_n"]) * tiles["block_k"] * item_bytes
    program_bytes: int = config.num_stages * stage_bytes + tiles["block_m"] * tiles["store_n"] * out_bytes + 1024
    return max(1, min(_SHARED_BYTES // program_bytes, _RESIDENT_WARPS // config.num_warps))


def matmul_config(m: int, n: int, k: int, items: Items, capability: int) -> LaunchConfig:
    """The configuration for ``a [m, k] @ weight [n, k].T``."""
    if items == "float32":
        return pointer_config(32, 64, 32, num_warps=4, num_stages=2)
    width = 128 // _item_bytes(items)
    if k % 16:
        # No wide loads, many pointers: small tiles, lest registers run out.
        return pointer_config(64, 64, 32, num_warps=4, num_stages=2, promote=items == "fp8")
    processors = PROCESSORS[max((known for known in PROCESSORS if known <= capability), default=80)]
    tma = 90 <= capability < 120 and n % 16 == 0 and k > 0
    if m <= 64:
        return _few_rows(m, n, k, items, processors, capability)
    tiles = _cdiv(m, 128) * _cdiv(n, 128)
    if tma and 4 * tiles >= 3 * processors:
        return _many_rows(m, n, k, items, processors, capability)
    block_n = 64 if items.endswith("by block") else 128
    splits = _splits(tiles * 128 // block_n, k, 4 * width, processors)
    stages = 4 if 90 <= capability < 120 else 3
    return pointer_config(128, block_n, width, splits, num_warps=8, num_stages=stages, promote=items == "fp8")


def _many_rows(m: int, n: int, k: int, items: Items, processors: int, capability: int) -> LaunchConfig:
    """Tiles as large as registers hold, unless they would leave processors idle in the last of their waves."""
    width = 128 // _item_bytes(items)
    if items == "fp8" and k > FAST_SUM_K and capability == 90:
        return tma_config(128, 128, 2 * width, store_n=128, num_warps=8, num_stages=3, promote=True)
    if items.endswith("by block"):
        return tma_config(128, 128, width, store_n=128, num_warps=8, num_stages=5)
    wide_waves, waves = (_cdiv(_cdiv(m, 128) * _cdiv(n, block_n), processors) for block_n in (256, 128))
    one_sum = items in ("16-bit", "fp8") or capability == 90
    block_n = 256 if one_sum and 2 * wide_waves <= 1.1 * waves else 128
    return tma_config(128, block_n, width, store_n=128, num_warps=8, num_stages=4)


def _few_rows(m: int, n: int, k: int, items: Items, processors: int, capability: int) -> LaunchConfig:
    """Narrow tiles, and k in parts where there are fewer of them than processors: bytes in flight are what counts."""
    block_m = max(16, 1 << (m - 1).bit_length())
    promote = items == "fp8"
    by_block = items.endswith("by block")
    block_k = 128 if by_block else 256 // _item_bytes(items)
    wide = block_m == 64 and not by_block and _cdiv(n, 128) >= processors
    block_n, stages = (128, 4) if wide else (64, 6 if by_block else 5)
    if capability >= 100:
        stages = min(stages, 4)  # more of them spill
    splits, tiles = 1, _cdiv(n, block_n)
    while 1.1 * splits * tiles < processors and 2 * splits * 4 * block_k <= k:
        splits *= 2
    return pointer_config(block_m, block_n, block_k, splits, num_warps=4, num_stages=stages, promote=promote)


def _item_bytes(items: Items) -> int:
    return {"float32": 4, "16-bit": 2}.get(items, 1)


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
