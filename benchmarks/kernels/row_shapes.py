"""Shapes of kernels that go over rows of activations, and what their launches may be configured as."""

from collections.abc import Callable
from itertools import product

import torch

from kernels.case import Case, Launch, Sweep
from kernels.launch import LaunchConfig

TOKENS = (1, 64, 512, 4096, 16384)
NAMES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.int8: "int8", torch.float8_e4m3fn: "fp8"}


def row_case(
    kernel: str,
    form: str,
    shape: dict[str, int],
    prepare: Callable[[torch.device], Launch],
    bytes_moved: int,
    operations: int,
    dtype: torch.dtype = torch.bfloat16,
) -> Case:
    """A case that calls what ``prepare`` returns with no configuration."""
    return Case(kernel, form, NAMES[dtype], shape, lambda device: prepare(device)(None), bytes_moved, operations)


def row_sweep(
    case: Case,
    prepare: Callable[[torch.device], Launch],
    width: int,
    values: tuple[int, ...],
    shipped: LaunchConfig,
) -> Sweep:
    """A sweep over whole rows a program, of about ``values`` in all, and warps."""
    block = 1 << (width - 1).bit_length()
    rows = sorted({max(1, value // block) for value in values})
    warps = [count for count in (1, 2, 4, 8, 16, 32) if block // (32 * count) <= 64]
    return Sweep(
        case,
        [
            LaunchConfig({"tile_rows": number, "block": block}, count, 1)
            for number, count in product(rows, warps)
            if 1 <= number * block // (32 * count) <= 64
        ],
        prepare,
        shipped,
    )
