"""Decode attention in two stages: how a context is split among programs, and how partial results become one.

The scheme is Flash-Decoding (Dao, Haziza, Massa and Sizov, 2023): programs attend to parts of a context, each leaves
its output and the logarithm of its softmax denominator, and a second kernel weighs the parts by the latter.
"""

import functools
import math
from collections.abc import Iterable

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.launch import LaunchConfig

MOST_SPLITS = 128
_REDUCTION_BYTES = 8 * 2**20  # what a large GPU reads in two microseconds, about the time of a small kernel
_ALONE = 0.9  # of its bandwidth that a multiprocessor reaches with one program where it could have more


@functools.lru_cache
def multiprocessors(device: torch.device) -> int:
    """How many multiprocessors the device has; 132, those of an H200, where kernels are interpreted."""
    if device.type != "cuda":
        return 132
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


@functools.lru_cache(maxsize=1024)
def choose_splits(programs: int, processors: int, slots: int, work_bytes: int, split_bytes: int, most: int) -> int:
    """Into how many parts to split each context, from 1 to ``most``, for the least time.

    ``programs`` is their number without splits, ``slots`` how many the chip runs at once. Programs of equal work run in
    waves, so reading ``work_bytes`` from the cache takes as much longer as the waves are empty; within a single wave,
    as some of the ``processors`` have more of it than others. A split adds as much time as reading ``split_bytes``, the
    second kernel some more.
    """

    def cost_bytes(splits: int) -> float:
        at_once = processors if programs * splits <= slots else slots
        waves = programs * splits / at_once
        reading = work_bytes * math.ceil(waves) / waves
        if waves <= 1 and at_once < slots:
            reading /= _ALONE
        return float(reading + (splits * split_bytes + _REDUCTION_BYTES if splits > 1 else 0))

    return min(range(1, max(1, min(most, MOST_SPLITS)) + 1), key=cost_bytes)


def split_evenly(tokens: int, splits: int, tile_tokens: int) -> tuple[int, int]:
    """How many tokens a split has, a multiple of the tile, and how many of those ``tokens`` make; at least one."""
    tiles = max(1, triton.cdiv(tokens, tile_tokens))
    split_tiles = triton.cdiv(tiles, splits)
    return split_tiles * tile_tokens, triton.cdiv(tiles, split_tiles)


@triton.jit
def _reduce_splits(
    partial, log_sums, sinks, out, heads, splits,
    width: tl.constexpr, padded_width: tl.constexpr, padded_splits: tl.constexpr, at_once: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    partial += row * splits * width
    log_sums += row * splits
    every = tl.arange(0, padded_splits)
    highest = tl.max(tl.load(log_sums + every, mask=every < splits, other=float("-inf")), 0)
    if sinks is not None:
        sink = tl.load(sinks + row % heads) * 1.4426950408889634
        highest = tl.maximum(highest, sink)
    highest = tl.where(highest == float("-inf"), 0.0, highest)  # nothing to attend to: all weights are zero

    columns = tl.arange(0, padded_width)
    total = tl.zeros([padded_width], tl.float32)
    weights = 0.0
    for first in range(0, splits, at_once):
        part = first + tl.arange(0, at_once)
        log_sum = tl.load(log_sums + part, mask=part < splits, other=float("-inf"))
        weight = tl.exp2(log_sum - highest)
        written = (log_sum > float("-inf"))[:, None] & (columns < width)[None, :]
        values = tl.load(partial + part[:, None] * width + columns[None, :], mask=written, other=0.0)
        total += tl.sum(values * weight[:, None], 0)
        weights += tl.sum(weight, 0)
    if sinks is not None:
        weights += tl.exp2(sink - highest)
    total = total / tl.where(weights == 0.0, 1.0, weights)
    tl.store(out + row * width + columns, total.to(out.dtype.element_ty), mask=columns < width)


def _config(width: int) -> LaunchConfig:
    return LaunchConfig({"at_once": 8}, num_warps=4 if width > 128 else 2, num_stages=1)


def reduce_splits(
    partial: torch.Tensor,
    log_sums: torch.Tensor,
    sinks: torch.Tensor | None,
    out: torch.Tensor,
    *,
    config: LaunchConfig | None = None,
) -> None:
    """Write to ``out`` [batch, heads, width] the softmax-weighted sum of partial attention results.

    ``partial`` [batch, heads, splits, width] in float32 is the output of each split by itself, ``log_sums`` [batch,
    heads, splits] the base-2 logarithm of its softmax denominator; minus infinity says that the split is empty and its
    output was not written. ``sinks`` [heads] are logits that only the denominator has. Rows that attend to nothing
    become zero.
    """
    batch, heads, splits, width = partial.shape
    constants = {"width": width, "padded_width": triton.next_power_of_2(width), "padded_splits": MOST_SPLITS}
    config = config or _config(width)
    _reduce_splits[(batch * heads,)](partial, log_sums, sinks, out, heads, splits, **constants, **config.arguments())


def reduction_forms(kinds: Iterable[str], widths: Iterable[int]) -> list[CompiledForm]:
    """The forms of this file's kernel for outputs of some types and widths, with sinks and without."""
    types = {"partial": "*fp32", "log_sums": "*fp32", "heads": "i32", "splits": "i32"}

    def form(kind: str, width: int, sinks: dict[str, str]) -> CompiledForm:
        constants = {"width": width, "padded_width": triton.next_power_of_2(width), "padded_splits": MOST_SPLITS}
        constants |= {} if sinks else {"sinks": None}
        name = " ".join([kind, f"width {width}", *sinks])
        configs = dict.fromkeys(CAPABILITIES, _config(width))
        return CompiledForm(_reduce_splits, name, {**types, **sinks, "out": f"*{kind}"}, constants, configs)

    return [form(kind, width, sinks) for kind in kinds for width in widths for sinks in ({}, {"sinks": "*fp32"})]
