"""The two grouped GEMMs of MoE models, over copies of tokens sorted by expert.

The first makes gates and ups of the same columns in one program, so that only their product is written. The second
writes one row per copy, scaled by its routing weight, where ``sum_copies`` finds it.
"""

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.errors import require_form
from kernels.expert_checks import check_down, check_gate_up
from kernels.expert_launch import down_config, gate_up_config, rows_per_tile
from kernels.expert_sorting import SortedCopies, max_tiles
from kernels.launch import LaunchConfig, capability, operation
from kernels.moe_reference import ExpertWeights, expert_down_reference, expert_gate_up_reference


@triton.jit
def _tile(tiles, n_tiles, group_m: tl.constexpr):
    """Which tile of copies and which of columns this program makes; columns change every ``group_m`` programs.

    Programs of a group share the columns' weights while they are in the cache.
    """
    program = tl.program_id(0)
    m_tiles = tl.load(tiles)
    first = program // (group_m * n_tiles) * group_m
    rows = tl.minimum(m_tiles - first, group_m)
    within = program % (group_m * n_tiles)
    return first + within % rows, within // rows


@triton.jit
def _gate_up(
    x,
    weights,
    bias,
    out,
    sorted_copies,
    expert_starts,
    tiles,
    tile_experts,
    tile_starts,
    x_row_stride,
    hidden,
    intermediate,
    copies_per_token: tl.constexpr,
    activation: tl.constexpr,
    has_bias: tl.constexpr,
    whole_k: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    block_k: tl.constexpr,
    group_m: tl.constexpr,
):
    n_tiles = tl.cdiv(intermediate, block_n)
    if tl.program_id(0) >= tl.load(tiles) * n_tiles:
        return
    tile, tile_n = _tile(tiles, n_tiles, group_m)
    expert = tl.load(tile_experts + tile).to(tl.int64)
    places = tl.load(tile_starts + tile) + tl.arange(0, block_m)
    inside = places < tl.load(expert_starts + expert + 1)
    tokens = tl.load(sorted_copies + places, mask=inside, other=0) // copies_per_token
    columns = tile_n * block_n + tl.arange(0, block_n)
    columns_inside = columns < intermediate
    depth = tl.arange(0, block_k)

    x_pointers = x + tokens.to(tl.int64)[:, None] * x_row_stride + depth[None, :]
    gate_pointers = weights + expert * 2 * intermediate * hidden + columns[:, None] * hidden + depth[None, :]
    up_pointers = gate_pointers + intermediate * hidden
    gate = tl.zeros((block_m, block_n), tl.float32)
    up = tl.zeros((block_m, block_n), tl.float32)
    for first in tl.range(0, hidden, block_k):
        rows_mask = inside[:, None]
        columns_mask = columns_inside[:, None]
        if not whole_k:
            depth_inside = (first + depth < hidden)[None, :]
            rows_mask = rows_mask & depth_inside
            columns_mask = columns_mask & depth_inside
        values = tl.load(x_pointers, mask=rows_mask, other=0.0)
        gate_weights = tl.load(gate_pointers, mask=columns_mask, other=0.0)
        up_weights = tl.load(up_pointers, mask=columns_mask, other=0.0)
        gate = tl.dot(values, gate_weights.trans(), gate, input_precision="ieee")
        up = tl.dot(values, up_weights.trans(), up, input_precision="ieee")
        x_pointers += block_k
        gate_pointers += block_k
        up_pointers += block_k

    if has_bias:
        bias_pointers = bias + expert * 2 * intermediate + columns
        gate += tl.load(bias_pointers, mask=columns_inside, other=0.0).to(tl.float32)[None, :]
        up += tl.load(bias_pointers + intermediate, mask=columns_inside, other=0.0).to(tl.float32)[None, :]
    if activation == "silu":
        result = gate * tl.sigmoid(gate) * up
    else:
        gate = tl.minimum(gate, 7.0)
        up = tl.minimum(tl.maximum(up, -7.0), 7.0)
        result = gate * tl.sigmoid(1.702 * gate) * (up + 1.0)
    pointers = out + places.to(tl.int64)[:, None] * intermediate + columns[None, :]
    tl.store(pointers, result.to(out.dtype.element_ty), mask=inside[:, None] & columns_inside[None, :])


@triton.jit
def _down(
    middle,
    weights,
    bias,
    routing_weights,
    out,
    sorted_copies,
    expert_starts,
    tiles,
    tile_experts,
    tile_starts,
    copies,
    hidden,
    intermediate,
    has_bias: tl.constexpr,
    whole_k: tl.constexpr,
    split_k: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    block_k: tl.constexpr,
    group_m: tl.constexpr,
):
    n_tiles = tl.cdiv(hidden, block_n)
    if tl.program_id(0) >= tl.load(tiles) * n_tiles:
        return
    tile, tile_n = _tile(tiles, n_tiles, group_m)
    expert = tl.load(tile_experts + tile).to(tl.int64)
    places = tl.load(tile_starts + tile) + tl.arange(0, block_m)
    inside = places < tl.load(expert_starts + expert + 1)
    columns = tile_n * block_n + tl.arange(0, block_n)
    columns_inside = columns < hidden
    depth = tl.arange(0, block_k)
    part = tl.program_id(1)
    blocks = tl.cdiv(intermediate, block_k)
    first_block = blocks * part // split_k
    last_block = blocks * (part + 1) // split_k

    start = first_block * block_k
    middle_pointers = middle + places.to(tl.int64)[:, None] * intermediate + (start + depth)[None, :]
    weight_pointers = (
        weights + expert * hidden * intermediate + columns[:, None] * intermediate + (start + depth)[None, :]
    )
    total = tl.zeros((block_m, block_n), tl.float32)
    for block in tl.range(first_block, last_block):
        rows_mask = inside[:, None]
        columns_mask = columns_inside[:, None]
        if not whole_k:
            depth_inside = (block * block_k + depth < intermediate)[None, :]
            rows_mask = rows_mask & depth_inside
            columns_mask = columns_mask & depth_inside
        values = tl.load(middle_pointers, mask=rows_mask, other=0.0)
        weight = tl.load(weight_pointers, mask=columns_mask, other=0.0)
        total = tl.dot(values, weight.trans(), total, input_precision="ieee")
        middle_pointers += block_k
        weight_pointers += block_k

    if has_bias:
        once = columns_inside & (part == 0)
        total += tl.load(bias + expert * hidden + columns, mask=once, other=0.0).to(tl.float32)[None, :]
    copy = tl.load(sorted_copies + places, mask=inside, other=0)
    total *= tl.load(routing_weights + copy, mask=inside, other=0.0)[:, None]
    rows = part.to(tl.int64) * copies + copy
    pointers = out + rows[:, None] * hidden + columns[None, :]
    tl.store(pointers, total.to(out.dtype.element_ty), mask=inside[:, None] & columns_inside[None, :])


@operation(expert_gate_up_reference, check_gate_up, strided=("x",))
def expert_gate_up(
    x: torch.Tensor, experts: ExpertWeights, order: SortedCopies, *, config: LaunchConfig | None = None
) -> torch.Tensor:
    """First layer and activation of each copy of ``x`` [tokens, hidden]: [copies, intermediate], sorted by expert.

    A ``config`` must have the ``block_m`` that ``order`` was cut by. Raises ``UnsupportedFormError`` for other types
    than fp16, bf16 and fp32, and for an activation that there is not.
    """
    config = config or gate_up_config(order.block_m, experts.hidden, x.element_size(), capability(x.device))
    require_form("expert_gate_up", "block_m", config.tiles["block_m"], [order.block_m])
    if x.stride(1) != 1:
        x = x.contiguous()
    hidden, intermediate = experts.hidden, experts.intermediate
    out = torch.empty((len(order.copies), intermediate), dtype=x.dtype, device=x.device)
    grid = (order.max_tiles * triton.cdiv(intermediate, config.tiles["block_n"]),)
    if grid[0]:
        _gate_up[grid](
            x,
            experts.gate_up,
            experts.gate_up if experts.gate_up_bias is None else experts.gate_up_bias,
            out,
            order.copies,
            order.expert_starts,
            order.tiles,
            order.tile_experts,
            order.tile_starts,
            x.stride(0),
            hidden,
            intermediate,
            copies_per_token=order.copies_per_token,
            activation=experts.activation,
            has_bias=experts.gate_up_bias is not None,
            whole_k=hidden % config.tiles["block_k"] == 0,
            **config.arguments(),
        )
    return out


@operation(expert_down_reference, check_down, strided=("routing_weights",))
def expert_down(
    middle: torch.Tensor,
    experts: ExpertWeights,
    routing_weights: torch.Tensor,
    order: SortedCopies,
    *,
    config: LaunchConfig | None = None,
) -> torch.Tensor:
    """Second layer of sorted copies times their routing weights: [parts, tokens * k, hidden], in order of copies.

    Parts, of a depth that is split, are to be summed. ``middle`` is [copies, intermediate], ``routing_weights`` fp32
    [tokens, k]. A ``config`` must have the ``block_m`` that ``order`` was cut by. Raises ``UnsupportedFormError`` for
    other types than fp16, bf16 and fp32.
    """
    hidden, intermediate, copies = experts.hidden, experts.intermediate, len(order.copies)
    if config is None:
        chip = capability(middle.device)
        config = down_config(order.block_m, order.max_tiles, hidden, intermediate, middle.element_size(), chip)
    require_form("expert_down", "block_m", config.tiles["block_m"], [order.block_m])
    split_k = config.tiles["split_k"]
    kind = middle.dtype if split_k == 1 else torch.float32
    parts = torch.empty((split_k, copies, hidden), dtype=kind, device=middle.device)
    grid = (order.max_tiles * triton.cdiv(hidden, config.tiles["block_n"]), split_k)
    if grid[0]:
        _down[grid](
            middle,
            experts.down,
            experts.down if experts.down_bias is None else experts.down_bias,
            routing_weights.contiguous(),
            parts,
            order.copies,
            order.expert_starts,
            order.tiles,
            order.tile_experts,
            order.tile_starts,
            copies,
            hidden,
            intermediate,
            has_bias=experts.down_bias is not None,
            whole_k=intermediate % config.tiles["block_k"] == 0,
            **config.arguments(),
        )
    return parts


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation: of decode batches and of prefill."""
    forms = []
    for kind, copies, experts, hidden, intermediate, activation in (
        ("bf16", 2, 8, 4096, 14336, "silu"),
        ("fp16", 256, 128, 2048, 768, "silu"),
        ("bf16", 128, 32, 2880, 2880, "clamped-swiglu"),
        ("bf16", 1024, 32, 2880, 2880, "clamped-swiglu"),
        ("bf16", 2048, 32, 2880, 2880, "clamped-swiglu"),
        ("bf16", 16384, 32, 2880, 2880, "clamped-swiglu"),
        ("bf16", 8192, 128, 2048, 768, "silu"),
        ("fp16", 65536, 128, 2048, 768, "silu"),
        ("bf16", 65536, 256, 7168, 2048, "silu"),
    ):
        block_m = rows_per_tile(copies, experts)
        most_tiles = max_tiles(copies, experts, block_m)
        first = {chip: gate_up_config(block_m, hidden, 2, chip) for chip in CAPABILITIES}
        second = {chip: down_config(block_m, most_tiles, hidden, intermediate, 2, chip) for chip in CAPABILITIES}
        form = f"{kind} rows={block_m} hidden={hidden} intermediate={intermediate}"
        large = {90: "wgmma.mma", 100: "tcgen05.mma"}
        instructions = large if block_m >= 64 else dict.fromkeys(CAPABILITIES, "mma.sync")
        sizes = dict.fromkeys(("hidden", "intermediate"), "i32")
        types = dict.fromkeys(("sorted_copies", "expert_starts", "tiles", "tile_experts", "tile_starts"), "*i32")
        types |= sizes | dict.fromkeys(("weights", "bias", "out"), f"*{kind}")
        gate_up_types = types | {"x": f"*{kind}", "x_row_stride": "i32"}
        down_types = types | {"middle": f"*{kind}", "routing_weights": "*fp32", "copies": "i32"}
        if second[90].tiles["split_k"] > 1:
            down_types["out"] = "*fp32"
        constants = {"has_bias": activation != "silu", "whole_k": True}
        gate_up_constants = {**constants, "copies_per_token": 2, "activation": activation}
        divisible = ("x_row_stride", *sizes)
        forms += [
            CompiledForm(_gate_up, form, gate_up_types, gate_up_constants, first, divisible, instructions),
            CompiledForm(_down, form, down_types, constants, second, divisible, instructions),
        ]
    return forms
