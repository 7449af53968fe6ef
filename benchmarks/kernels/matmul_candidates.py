"""Launch configurations to choose among for GEMMs, by how many rows there are.

``item_bytes`` is 2 or 1; ``promote`` asks for fp8 sums that are promoted to float32 (kernels/matmul_tiles.py).
"""

from collections.abc import Iterator
from itertools import product

from kernels.launch import LaunchConfig
from kernels.matmul_config import pointer_config, tma_config


def few_rows(m: int, item_bytes: int, promote: bool = False) -> Iterator[LaunchConfig]:
    """Up to 64 rows: narrow tiles of the weight, many bytes of it in flight."""
    block_m = max(16, 1 << (m - 1).bit_length())
    pointers = ((16, 1024, 3), (32, 512, 4), (32, 1024, 3), (64, 256, 5), (128, 256, 4))
    for (block_n, row_bytes, num_stages), splits in product(pointers, (1, 2, 4)):
        if (block_m + block_n) * row_bytes * num_stages <= 200_000:
            block_k = row_bytes // item_bytes
            yield pointer_config(block_m, block_n, block_k, splits, num_warps=4, num_stages=num_stages, promote=promote)
    tma = ((32, 256, 8), (32, 512, 4), (32, 512, 6), (64, 256, 5), (64, 256, 6), (64, 512, 4), (128, 256, 4))
    for tile_m, (block_n, row_bytes, num_stages) in product(sorted({block_m, 64}), tma):
        if (tile_m + block_n) * row_bytes * num_stages <= 215_000:
            block_k = row_bytes // item_bytes
            yield tma_config(tile_m, block_n, block_k, block_n, num_warps=4, num_stages=num_stages, promote=promote)


def few_rows_by_block(m: int) -> Iterator[LaunchConfig]:
    """The same with scales by blocks, each of which is a tile of k."""
    block_m = max(16, 1 << (m - 1).bit_length())
    for (block_n, num_stages), splits in product(((16, 8), (32, 6), (64, 6), (128, 5)), (1, 2, 4)):
        yield pointer_config(block_m, block_n, 128, splits, num_warps=4, num_stages=num_stages)
    for block_n, num_stages in ((32, 8), (32, 14), (64, 8), (64, 12), (128, 8)):
        yield tma_config(64, block_n, 128, block_n, num_warps=4, num_stages=num_stages)


def medium_rows(item_bytes: int, promote: bool = False, block_scales: bool = False) -> Iterator[LaunchConfig]:
    """Between decode and prefill: too few tiles for the chip, unless they are small or split."""
    block_k = 128 // item_bytes
    pointers = ((128, 64, 4, 5), (128, 64, 8, 5), (128, 128, 8, 4), (64, 128, 8, 4))
    for (block_m, block_n, num_warps, num_stages), splits in product(pointers, (1, 2, 4)):
        if not (block_scales and block_m * block_n > 128 * 64):
            yield pointer_config(
                block_m, block_n, block_k, splits, num_warps=num_warps, num_stages=num_stages, promote=promote
            )
    for block_m, block_n, num_warps, num_stages in (
        (64, 64, 4, 8),
        (64, 128, 4, 6),
        (128, 64, 8, 6),
        (128, 64, 4, 6),
        (128, 128, 8, 4),
        (128, 128, 8, 6),
    ):
        yield tma_config(block_m, block_n, block_k, 64, num_warps=num_warps, num_stages=num_stages, promote=promote)
    if not promote and not block_scales:
        yield tma_config(128, 256, block_k, 128, num_warps=8, num_stages=4)


_SHARING = ((64, 128, 64, 3), (64, 128, 128, 3), (128, 64, 64, 3), (64, 128, 64, 4))
"""Tiles [m, n], columns of a strip and stages of programs of four warps, several to a multiprocessor."""


def many_rows(item_bytes: int, promote: bool = False) -> Iterator[LaunchConfig]:
    """Prefill: tiles as large as registers and shared memory hold."""
    for (block_m, block_n, row_bytes, store_n, num_stages), group_m in product(
        (
            (128, 256, 128, 128, 4),
            (128, 256, 128, 64, 4),
            (128, 256, 128, 256, 3),
            (256, 128, 128, 64, 4),
            (256, 128, 128, 128, 3),
            (128, 128, 128, 128, 4),
            (128, 128, 128, 128, 6),
            (128, 128, 256, 128, 3),
        ),
        (4, 8, 16),
    ):
        if promote and block_m * block_n > 128 * 128:
            continue
        yield tma_config(
            block_m,
            block_n,
            row_bytes // item_bytes,
            store_n,
            num_warps=8,
            num_stages=num_stages,
            group_m=group_m,
            promote=promote,
        )
    if promote:
        for block_m, block_n, store_n, num_stages in _SHARING:
            yield tma_config(block_m, block_n, 128, store_n, num_warps=4, num_stages=num_stages, promote=True)


def many_rows_by_block() -> Iterator[LaunchConfig]:
    """Prefill with scales by blocks, which take a second set of registers for the sum."""
    for (block_m, block_n, store_n, num_warps, num_stages), group_m in product(
        (
            (128, 128, 128, 8, 4),
            (128, 128, 128, 8, 6),
            (128, 128, 64, 8, 5),
            (128, 64, 64, 8, 6),
            *((block_m, block_n, store_n, 4, num_stages) for block_m, block_n, store_n, num_stages in _SHARING),
        ),
        (4, 8, 16),
    ):
        yield tma_config(block_m, block_n, 128, store_n, num_warps=num_warps, num_stages=num_stages, group_m=group_m)
