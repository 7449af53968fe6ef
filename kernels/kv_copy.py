"""Copies of whole KV blocks: inside a cache for copy-on-write, out of it and back for swapping and transfer.

Blocks lie along ``axis`` of a cache: 0 in the cache of one layer, 1 where layers are stacked before it. What a block
holds does not matter, so scales are copied as keys and values are; cache and buffer are contiguous.
"""

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.errors import require_form
from kernels.launch import LaunchConfig, operation


def copy_blocks_reference(
    cache: torch.Tensor, sources: torch.Tensor, destinations: torch.Tensor, axis: int = 0
) -> torch.Tensor:
    """The cache, in which block ``destinations[i]`` now holds what ``sources[i]`` held. No destination is a source."""
    return scatter_blocks_reference(gather_blocks_reference(cache, sources, axis), cache, destinations, axis)


def gather_blocks_reference(cache: torch.Tensor, blocks: torch.Tensor, axis: int = 0) -> torch.Tensor:
    """A buffer like the cache that holds the blocks in the order given, and no others."""
    return _bytes(cache).index_select(axis, blocks.long()).view(cache.dtype)


def scatter_blocks_reference(
    buffer: torch.Tensor, cache: torch.Tensor, blocks: torch.Tensor, axis: int = 0
) -> torch.Tensor:
    """The cache, whose ``blocks`` now hold what the buffer does, in its order. No block is named twice."""
    _bytes(cache).index_copy_(axis, blocks.long(), _bytes(buffer))
    return cache


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(torch.uint8)


@triton.jit
def _copy_blocks(
    source,
    destination,
    source_blocks,
    destination_blocks,
    words,
    source_layer_words,
    destination_layer_words,
    block: tl.constexpr,
):
    """Block ``i`` is the i-th of a side that has no list of blocks."""
    number = tl.program_id(0)
    layer = tl.program_id(2).to(tl.int64)
    columns = tl.program_id(1) * block + tl.arange(0, block)
    if source_blocks is not None:
        source_block = tl.load(source_blocks + number).to(tl.int64)
    else:
        source_block = number.to(tl.int64)
    if destination_blocks is not None:
        destination_block = tl.load(destination_blocks + number).to(tl.int64)
    else:
        destination_block = number.to(tl.int64)
    inside = columns < words
    copied = tl.load(source + layer * source_layer_words + source_block * words + columns, mask=inside)
    tl.store(destination + layer * destination_layer_words + destination_block * words + columns, copied, mask=inside)


def launch_config(scattered: bool) -> LaunchConfig:
    """How many words a program copies; by two warps to blocks in any order, by four into a buffer."""
    return LaunchConfig({"block": 512}, num_warps=2 if scattered else 4, num_stages=1)


_WORDS = (torch.int64, torch.int32, torch.int16, torch.uint8)


def _launch(
    name: str,
    source: torch.Tensor,
    destination: torch.Tensor,
    source_blocks: torch.Tensor | None,
    destination_blocks: torch.Tensor | None,
    count: int,
    axis: int,
    config: LaunchConfig | None,
) -> None:
    layers = 1 if axis == 0 else source.shape[0]
    block_bytes = source.shape[axis + 1 :].numel() * source.itemsize
    word = next(kind for kind in _WORDS if block_bytes % kind.itemsize == 0)
    words = block_bytes // word.itemsize
    config = config or launch_config(destination_blocks is not None)
    if count and words and layers:
        _copy_blocks[(count, triton.cdiv(words, config.tiles["block"]), layers)](
            source.view(torch.uint8).flatten().view(word),
            destination.view(torch.uint8).flatten().view(word),
            source_blocks,
            destination_blocks,
            words,
            source.nbytes // layers // word.itemsize,
            destination.nbytes // layers // word.itemsize,
            **config.arguments(),
        )


def _check_copy(cache: torch.Tensor, sources: torch.Tensor, destinations: torch.Tensor, axis: int = 0) -> None:
    require_form("copy_blocks", "axis", axis, (0, 1))


def _check_gather(cache: torch.Tensor, blocks: torch.Tensor, axis: int = 0) -> None:
    require_form("gather_blocks", "axis", axis, (0, 1))


def _check_scatter(buffer: torch.Tensor, cache: torch.Tensor, blocks: torch.Tensor, axis: int = 0) -> None:
    require_form("scatter_blocks", "axis", axis, (0, 1))


@operation(copy_blocks_reference, _check_copy)
def copy_blocks(
    cache: torch.Tensor,
    sources: torch.Tensor,
    destinations: torch.Tensor,
    axis: int = 0,
    *,
    config: LaunchConfig | None = None,
) -> torch.Tensor:
    """The cache, in which block ``destinations[i]`` now holds what ``sources[i]`` held. No destination is a source.

    Raises ``UnsupportedFormError`` for blocks along another axis than 0 or 1, or a cache that is not contiguous.
    """
    _launch("copy_blocks", cache, cache, sources, destinations, len(sources), axis, config)
    return cache


@operation(gather_blocks_reference, _check_gather)
def gather_blocks(
    cache: torch.Tensor, blocks: torch.Tensor, axis: int = 0, *, config: LaunchConfig | None = None
) -> torch.Tensor:
    """A buffer like the cache that holds the blocks in the order given, and no others. Raises as ``copy_blocks``."""
    shape = [*cache.shape[:axis], len(blocks), *cache.shape[axis + 1 :]]
    buffer = torch.empty(shape, dtype=cache.dtype, device=cache.device)
    _launch("gather_blocks", cache, buffer, blocks, None, len(blocks), axis, config)
    return buffer


@operation(scatter_blocks_reference, _check_scatter)
def scatter_blocks(
    buffer: torch.Tensor,
    cache: torch.Tensor,
    blocks: torch.Tensor,
    axis: int = 0,
    *,
    config: LaunchConfig | None = None,
) -> torch.Tensor:
    """The cache, whose ``blocks`` now hold what the buffer does, in its order. No block is named twice.

    Raises as ``copy_blocks``.
    """
    _launch("scatter_blocks", buffer, cache, None, blocks, len(blocks), axis, config)
    return cache


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation."""
    sizes = ("words", "source_layer_words", "destination_layer_words")
    both = ("source_blocks", "destination_blocks")
    forms = []
    for name, listed in (("copy", both), ("gather", both[:1]), ("scatter", both[1:])):
        types = {
            "source": "*i64",
            "destination": "*i64",
            **dict.fromkeys(listed, "*i32"),
            "words": "i32",
            **dict.fromkeys(sizes[1:], "i64"),
        }
        absent = {side: None for side in both if side not in listed}
        configs = dict.fromkeys(CAPABILITIES, launch_config("destination_blocks" in listed))
        forms.append(CompiledForm(_copy_blocks, name, types, absent, configs, sizes))
    return forms
