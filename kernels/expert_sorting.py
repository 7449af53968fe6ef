"""Tokens sorted by the experts they visit, and the tiles a grouped GEMM makes of them: all on the device.

A token that visits ``k`` experts has ``k`` copies; copy ``token * k + j`` is its visit to the ``j``-th. Copies of an
expert stand together, in order, and are cut into tiles of ``block_m``. How many tiles there are is known on the device
only: the host launches for the most there can be, and programs beyond the number do nothing.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.launch import LaunchConfig, operation


@dataclass(frozen=True, slots=True)
class SortedCopies:
    """The copies of all tokens, by expert; int32 tensors.

    ``copies`` [tokens * k] says which copy stands at each place, ``expert_starts`` [experts + 1] where each expert's
    begin. Tile ``t`` of the first ``tiles`` [1] is of expert ``tile_experts[t]``, from place ``tile_starts[t]`` on; the
    arrays have ``max_tiles`` entries, those beyond the number with expert ``experts``.
    """

    copies: torch.Tensor
    expert_starts: torch.Tensor
    tiles: torch.Tensor
    tile_experts: torch.Tensor
    tile_starts: torch.Tensor
    block_m: int
    copies_per_token: int

    @property
    def max_tiles(self) -> int:
        """The most tiles there can be, whatever the routing."""
        return len(self.tile_experts)


def max_tiles(copies: int, experts: int, block_m: int) -> int:
    """The most tiles that ``copies`` can make: each expert that has any wastes less than one."""
    return (copies + min(experts, copies) * (block_m - 1)) // block_m


def sort_tokens_by_expert_reference(expert_ids: torch.Tensor, experts: int, block_m: int) -> SortedCopies:
    """Sort the copies of tokens that visit ``expert_ids`` [tokens, k], and cut them into tiles of ``block_m``."""
    flat, device = expert_ids.flatten().long(), expert_ids.device
    starts = torch.zeros(experts + 1, dtype=torch.int32, device=device)
    starts[1:] = torch.bincount(flat, minlength=experts).cumsum(0)
    limit = max_tiles(len(flat), experts, block_m)
    tile_experts = torch.full((limit,), experts, dtype=torch.int32, device=device)
    tile_starts = torch.full((limit,), len(flat), dtype=torch.int32, device=device)
    tile = 0
    for expert, (first, last) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        for start in range(first, last, block_m):
            tile_experts[tile], tile_starts[tile] = expert, start
            tile += 1
    tiles = torch.tensor([tile], dtype=torch.int32, device=device)
    copies = torch.sort(flat, stable=True).indices.int()
    return SortedCopies(copies, starts, tiles, tile_experts, tile_starts, block_m, expert_ids.shape[1])


@triton.jit
def _count_by_expert(expert_ids, counts, copies, chunk: tl.constexpr, columns: tl.constexpr):
    """How many copies of each chunk go to each expert."""
    places = tl.program_id(0) * chunk + tl.arange(0, chunk)
    inside = places < copies
    histogram = tl.histogram(tl.load(expert_ids + places, mask=inside, other=0), columns, mask=inside)
    tl.store(counts + tl.program_id(0) * columns + tl.arange(0, columns), histogram)


@triton.jit
def _place_by_expert(
    expert_ids,
    counts,
    sorted_copies,
    expert_starts,
    tiles,
    tile_experts,
    tile_starts,
    copies,
    experts,
    most_tiles,
    block_m: tl.constexpr,
    chunks: tl.constexpr,
    chunk: tl.constexpr,
    columns: tl.constexpr,
):
    """Each program places the copies of its chunk, and writes its share of the tiles."""
    program = tl.program_id(0)
    places = program * chunk + tl.arange(0, chunk)
    inside = places < copies
    ids = tl.load(expert_ids + places, mask=inside, other=0)
    expert = tl.arange(0, columns)

    # Copies of each expert in all chunks, and in those before this one.
    if chunks == 1:
        total = tl.histogram(ids, columns, mask=inside)
        before = tl.zeros_like(total)
    else:
        total = tl.zeros((columns,), tl.int32)
        before = tl.zeros((columns,), tl.int32)
        for first in tl.range(0, chunks, 16):
            other = first + tl.arange(0, 16)
            pointers = counts + other[:, None] * columns + expert[None, :]
            part = tl.load(pointers, mask=(other < chunks)[:, None], other=0)
            total += tl.sum(part, axis=0)
            before += tl.sum(tl.where((other < program)[:, None], part, 0), axis=0)
    starts = tl.cumsum(total, axis=0) - total

    # Within the chunk a copy stands behind those of its expert that precede it.
    rank = tl.zeros((chunk,), tl.int32)
    own = tl.arange(0, chunk)
    for first in tl.range(0, chunk, 32):
        other = first + tl.arange(0, 32)
        other_ids = tl.load(expert_ids + program * chunk + other, mask=program * chunk + other < copies, other=-1)
        precedes = (ids[:, None] == other_ids[None, :]) & (other[None, :] < own[:, None])
        rank += tl.sum(precedes.to(tl.int32), axis=1)
    tl.store(sorted_copies + tl.gather(starts + before, ids, axis=0) + rank, places, mask=inside)

    tiles_of = tl.cdiv(total, block_m)
    first_tile = tl.cumsum(tiles_of, axis=0) - tiles_of
    if program == 0:
        tl.store(expert_starts + expert, starts, mask=expert < experts)
        tl.store(expert_starts + experts, copies)
        tl.store(tiles, tl.sum(tiles_of, axis=0))
    for first in tl.range(program * 32, most_tiles, chunks * 32):
        tile = first + tl.arange(0, 32)
        tile_expert = tl.sum((first_tile + tiles_of)[None, :] <= tile[:, None], axis=1)
        known = tl.minimum(tile_expert, columns - 1)
        start = tl.gather(starts, known, axis=0) + (tile - tl.gather(first_tile, known, axis=0)) * block_m
        exists = tile_expert < experts
        tl.store(tile_experts + tile, tl.where(exists, tile_expert, experts), mask=tile < most_tiles)
        tl.store(tile_starts + tile, tl.where(exists, start, copies), mask=tile < most_tiles)


_MAX_CHUNK = 512


def launch_config(copies: int) -> LaunchConfig:
    """One chunk for a decode batch; the comparisons within a chunk are quadratic, so none is larger than 512."""
    chunk = min(_MAX_CHUNK, max(64, triton.next_power_of_2(copies)))
    return LaunchConfig({"chunk": chunk}, num_warps=chunk // 64, num_stages=1)


@operation(sort_tokens_by_expert_reference, strided=("expert_ids",))
def sort_tokens_by_expert(
    expert_ids: torch.Tensor, experts: int, block_m: int, *, config: LaunchConfig | None = None
) -> SortedCopies:
    """Sort the copies of tokens that visit ``expert_ids`` [tokens, k], and cut them into tiles of ``block_m``.

    The sort is stable, so the result is the same every time. ``expert_ids`` int32 must be below ``experts``.
    """
    copies, device = expert_ids.numel(), expert_ids.device
    config = config or launch_config(copies)
    chunk, columns = config.tiles["chunk"], triton.next_power_of_2(experts)
    chunks = max(1, triton.cdiv(copies, chunk))
    most_tiles = max_tiles(copies, experts, block_m)

    def empty(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.int32, device=device)

    order = SortedCopies(
        empty(copies), empty(experts + 1), empty(1), empty(most_tiles), empty(most_tiles), block_m, expert_ids.shape[1]
    )
    ids = expert_ids.contiguous()
    counts = empty(chunks, columns)
    arguments = {**config.arguments(), "columns": columns}
    if chunks > 1:
        _count_by_expert[(chunks,)](ids, counts, copies, **arguments)
    _place_by_expert[(chunks,)](
        ids,
        counts,
        order.copies,
        order.expert_starts,
        order.tiles,
        order.tile_experts,
        order.tile_starts,
        copies,
        experts,
        most_tiles,
        block_m=block_m,
        chunks=chunks,
        **arguments,
    )
    return order


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation."""
    counting = {"expert_ids": "*i32", "counts": "*i32", "copies": "i32"}
    placing = dict.fromkeys(
        ("expert_ids", "counts", "sorted_copies", "expert_starts", "tiles", "tile_experts", "tile_starts"), "*i32"
    )
    placing |= dict.fromkeys(("copies", "experts", "most_tiles"), "i32")
    forms = []
    for columns, copies, block_m in ((8, 16, 16), (256, 512, 16), (256, 65536, 128)):
        config = launch_config(copies)
        constants = {"block_m": block_m, "chunks": triton.cdiv(copies, config.tiles["chunk"]), "columns": columns}
        form = f"experts={columns} copies={copies}"
        configs = dict.fromkeys(CAPABILITIES, config)
        forms.append(CompiledForm(_place_by_expert, form, placing, constants, configs))
    return [*forms, CompiledForm(_count_by_expert, "experts=256", counting, {"columns": 256}, configs)]
