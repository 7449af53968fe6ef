"""Copies of KV blocks: inside a cache, out of it, and back."""

from functools import partial
from itertools import product

import torch

from benchmarks.kernels.row_shapes import row_case
from kernels.case import Case, Launch, Sweep
from kernels.kv_copy import copy_blocks, gather_blocks, launch_config, scatter_blocks
from kernels.launch import LaunchConfig

FORMS = ("copy", "gather", "scatter")


def _copy(device: torch.device, form: str, layers: int, blocks: int, block_size: int) -> Launch:
    cache = torch.randn((layers, 4 * blocks, 8, block_size, 128), device=device, dtype=torch.bfloat16)
    order = torch.randperm(4 * blocks, device=device).int()
    chosen, others = order[:blocks], order[blocks : 2 * blocks]
    if form == "copy":
        return lambda config: lambda: copy_blocks(cache, chosen, others, 1, config=config)
    if form == "gather":
        return lambda config: lambda: gather_blocks(cache, chosen, 1, config=config)
    buffer = gather_blocks(cache, chosen, 1)
    return lambda config: lambda: scatter_blocks(buffer, cache, chosen, 1, config=config)


def _case(form: str, layers: int, blocks: int, block_size: int) -> Case:
    shape = {"layers": layers, "blocks": blocks, "block_size": block_size}
    moved = layers * blocks * 8 * block_size * 128 * 2 * 2 + blocks * 4
    return row_case("kv_copy", form, shape, partial(_copy, form=form, **shape), moved, 0)


def cases(toy: bool) -> list[Case]:
    """From one block of one layer, as copy-on-write asks, to a long request of a whole model."""
    if toy:
        return [_case(form, 2, 2, 16) for form in FORMS]
    sizes = ((1, 1), (32, 1), (1, 64), (32, 16), (32, 256))
    return [_case(form, *size, block) for form, size, block in product(FORMS, sizes, (16, 64))]


def sweeps() -> list[Sweep]:
    """Words of eight bytes a program, and warps."""
    candidates = [
        LaunchConfig({"block": block}, warps, 1) for block, warps in product((512, 1024, 2048, 4096), (2, 4, 8, 16))
    ]
    shape = {"layers": 32, "blocks": 256, "block_size": 16}
    return [
        Sweep(_case(form, **shape), candidates, partial(_copy, form=form, **shape), launch_config(form != "gather"))
        for form in FORMS
    ]
