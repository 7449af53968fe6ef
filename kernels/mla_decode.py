"""Decode with multi-head latent attention (DeepSeek-V2, 2024, section 2.1) over paged latents, projections absorbed.

A token's cache is one latent of 512 numbers, from which all heads' keys and values would be projected, and one rotary
key of 64 that all heads share. With the projections moved to the query and the output, all heads attend to the latents
themselves: logits are taken over latent and rotary part, and the output is the weighted sum of latents. So a tile of
latents is read once for both products, and by as many heads as a program can hold. Contexts are split among programs as
in ``kernels/paged_decode.py``.
"""

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.decode_steps import load_blocks, slots_in_blocks, softmax_step
from kernels.errors import require_form, require_rows
from kernels.launch import LaunchConfig, capability, operation
from kernels.split_reduction import choose_splits, multiprocessors, reduce_splits, reduction_forms, split_evenly

LATENT_DIM = 512
ROTARY_DIM = 64
HEAD_DIM = LATENT_DIM + ROTARY_DIM
BLOCK_SIZES = (16, 32, 64, 128)
TYPES = (torch.float16, torch.bfloat16, torch.float32)
_LEAST_TILES = 2  # of a split
_FEW_HEADS = 256  # of all requests


def mla_decode_reference(
    q: torch.Tensor,
    latent_cache: torch.Tensor,
    block_tables: torch.Tensor,
    context_lengths: torch.Tensor,
    scale: float,
    *,
    splits: int | None = None,
    max_context_tokens: int,
) -> torch.Tensor:
    """Attention of one query token per request to its latents, in float64; ``mla_decode`` has the arguments.

    ``splits`` and ``max_context_tokens`` say how the work may be divided, so they have no effect here.
    """
    block_size = latent_cache.shape[1]
    out = torch.zeros_like(q[..., :LATENT_DIM])
    for request, length in enumerate(context_lengths.tolist()):
        blocks = block_tables[request, : -(-length // block_size)].long()
        latents = latent_cache[blocks].flatten(0, 1)[:length].double()
        weights = torch.softmax(q[request].double() @ latents.T * scale, -1)
        out[request] = (weights @ latents[:, :LATENT_DIM]).to(q.dtype)
    return out


@triton.jit
def _mla_decode(
    q, latent_cache, block_tables, context_lengths,
    out, partial, log_sums,
    scale, split_tokens, heads, table_width, block_stride,
    latent_dim: tl.constexpr, rotary_dim: tl.constexpr, block_size: tl.constexpr,
    rows: tl.constexpr, tile_tokens: tl.constexpr,
):  # fmt: skip
    split, splits = tl.program_id(1), tl.num_programs(1)
    request = tl.program_id(2).to(tl.int64)
    member = tl.program_id(0) * rows + tl.arange(0, rows)  # neighbours read the same latents, from the L2 cache
    head = request * heads + member
    present = member < heads

    length = tl.load(context_lengths + request)
    begin = split * split_tokens
    end = tl.where(split == splits - 1, length, tl.minimum(begin + split_tokens, length))
    if log_sums is not None:  # noqa: SIM102 (the compiler looks into joint conditions)
        if begin >= length:
            tl.store(log_sums + head * splits + split, tl.full([rows], float("-inf"), tl.float32), mask=present)
            return

    stride: tl.constexpr = latent_dim + rotary_dim
    dim, rotary = tl.arange(0, latent_dim), latent_dim + tl.arange(0, rotary_dim)
    query = tl.load(q + head[:, None] * stride + dim[None, :], mask=present[:, None], other=0.0)
    rotary_query = tl.load(q + head[:, None] * stride + rotary[None, :], mask=present[:, None], other=0.0)
    block_tables += request * table_width
    scale *= 1.4426950408889634  # log2(e): logits in base 2

    highest = tl.full([rows], float("-inf"), tl.float32)
    weight_sum = tl.zeros([rows], tl.float32)
    total = tl.zeros([rows, latent_dim], tl.float32)
    block = load_blocks(block_tables, begin, length, block_size, tile_tokens)
    for start in range(begin, end, tile_tokens):
        inside = start + tl.arange(0, tile_tokens) < length
        slot = slots_in_blocks(start, block_size, tile_tokens)
        place = latent_cache + (block.to(tl.int64) * block_stride + slot * stride)[:, None]
        block = load_blocks(block_tables, start + tile_tokens, length, block_size, tile_tokens)

        latents = tl.load(place + dim[None, :], mask=inside[:, None], other=0.0)
        rotary_keys = tl.load(place + rotary[None, :], mask=inside[:, None], other=0.0)
        logits = tl.dot(query, tl.trans(latents), input_precision="ieee")
        logits = tl.dot(rotary_query, tl.trans(rotary_keys), logits, input_precision="ieee")
        logits = tl.where(inside[None, :], logits * scale, float("-inf"))

        weights, rescale, highest, weight_sum = softmax_step(logits, highest, weight_sum)
        total = tl.dot(weights.to(latents.dtype), latents, total * rescale[:, None], input_precision="ieee")

    total *= (1.0 / tl.where(weight_sum == 0.0, 1.0, weight_sum))[:, None]  # zero for an empty context
    first_head = request * heads  # 64 bits for the program, not for each element
    if log_sums is not None:
        tl.store(log_sums + head * splits + split, highest + tl.log2(weight_sum), mask=present)
        place = (member * splits + split)[:, None] * latent_dim + dim[None, :]
        tl.store(partial + first_head * splits * latent_dim + place, total, mask=present[:, None])
    else:
        place = member[:, None] * latent_dim + dim[None, :]
        tl.store(out + first_head * latent_dim + place, total.to(out.dtype.element_ty), mask=present[:, None])


def launch_config(dtype: torch.dtype, batch: int, heads: int, block_size: int, sm: int) -> LaunchConfig:
    """The shipped configuration; tiles of more tokens than a block has would spill."""
    if dtype == torch.float32:
        return LaunchConfig({"rows": 16, "tile_tokens": 16}, num_warps=8, num_stages=1)
    if sm == 90 and batch * heads <= _FEW_HEADS:  # programs of few heads, so that there are enough
        if block_size >= 64:
            return LaunchConfig({"rows": 16, "tile_tokens": 64}, num_warps=4, num_stages=2)
        return LaunchConfig({"rows": 16, "tile_tokens": 32}, num_warps=4, num_stages=3)
    if sm == 90 and heads > 32:
        if block_size >= 64:
            return LaunchConfig({"rows": 64, "tile_tokens": 64}, num_warps=8, num_stages=2)
        return LaunchConfig({"rows": 64, "tile_tokens": 32}, num_warps=8, num_stages=3)
    if heads > 16:
        return LaunchConfig({"rows": 32, "tile_tokens": 32}, num_warps=8, num_stages=3)
    return LaunchConfig({"rows": 16, "tile_tokens": 32}, num_warps=4, num_stages=3)


def _check(q: torch.Tensor, latent_cache: torch.Tensor, block_tables: torch.Tensor, *_: Any, **__: Any) -> None:
    require_form("mla_decode", "type", q.dtype, TYPES)
    require_form("mla_decode", "cache type", latent_cache.dtype, [q.dtype])
    require_form("mla_decode", "head dimension", q.shape[2], [HEAD_DIM])
    require_form("mla_decode", "block size", latent_cache.shape[1], BLOCK_SIZES)
    require_form("mla_decode", "strides within a block", latent_cache.stride()[1:], [(HEAD_DIM, 1)])
    require_rows("mla_decode", "block_tables", block_tables)


@operation(mla_decode_reference, _check, strided=("latent_cache", "block_tables"))
def mla_decode(
    q: torch.Tensor,
    latent_cache: torch.Tensor,
    block_tables: torch.Tensor,
    context_lengths: torch.Tensor,
    scale: float,
    *,
    splits: int | None = None,
    max_context_tokens: int,
    config: LaunchConfig | None = None,
) -> torch.Tensor:
    """Attention of one query token per request to its latents: [batch, heads, 512] in the type of ``q``.

    ``q`` [batch, heads, 576]: the query in latent space, then its rotary part; ``latent_cache`` [num_blocks,
    block_size, 576] in the same type and form, each block contiguous. ``block_tables`` int32 [batch, blocks];
    ``context_lengths`` int32 [batch] count the query's own token, and a request without context gets zeros.
    ``max_context_tokens``, which should be the longest context, and ``splits``, by default chosen to fill the chip, set
    how contexts are divided; the result does not depend on them but for rounding.

    Raises ``UnsupportedFormError`` for other types, dimensions or block sizes.
    """
    batch, heads = q.shape[:2]
    out = torch.empty((batch, heads, LATENT_DIM), dtype=q.dtype, device=q.device)
    if not batch:
        return out
    config = config or launch_config(q.dtype, batch, heads, latent_cache.shape[1], capability(q.device))
    tile_tokens = config.tiles["tile_tokens"]
    head_tiles = triton.cdiv(heads, config.tiles["rows"])
    if splits is None:
        work_bytes = batch * head_tiles * max_context_tokens * HEAD_DIM * q.element_size()
        slots = multiprocessors(q.device) * (1 if config.tiles["rows"] == 64 else 2)
        most = max_context_tokens // (_LEAST_TILES * tile_tokens)
        splits = choose_splits(batch * head_tiles, slots, slots, work_bytes, 2 * 4 * out.numel(), most)
    split_tokens, splits = split_evenly(max_context_tokens, splits, tile_tokens)

    partial = log_sums = None
    if splits > 1:
        partial = torch.empty((batch, heads, splits, LATENT_DIM), dtype=torch.float32, device=q.device)
        log_sums = torch.empty((batch, heads, splits), dtype=torch.float32, device=q.device)
    _mla_decode[(head_tiles, splits, batch)](
        q, latent_cache, block_tables, context_lengths,
        out, partial, log_sums,
        scale, split_tokens, heads, block_tables.stride(0), latent_cache.stride(0),
        latent_dim=LATENT_DIM, rotary_dim=ROTARY_DIM, block_size=latent_cache.shape[1],
        **config.arguments(),
    )  # fmt: skip
    if partial is not None and log_sums is not None:
        reduce_splits(partial, log_sums, None, out)
    return out


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation."""
    torch_types = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}

    def form(kind: str, heads: int, block_size: int = 64, split: bool = True, batch: int = 64) -> CompiledForm:
        types = {"q": f"*{kind}", "latent_cache": f"*{kind}", "out": f"*{kind}", "scale": "fp32"}
        types |= {"block_tables": "*i32", "context_lengths": "*i32"}
        types |= dict.fromkeys(("split_tokens", "heads", "table_width", "block_stride"), "i32")
        types |= dict.fromkeys(("partial", "log_sums"), "*fp32") if split else {}
        constants: dict[str, int | None] = {
            "latent_dim": LATENT_DIM,
            "rotary_dim": ROTARY_DIM,
            "block_size": block_size,
        }
        constants |= {} if split else {"partial": None, "log_sums": None}
        name = f"{kind} heads {heads} block_size {block_size}" + ("" if split else " one split")
        name += " small batch" if batch == 1 else ""
        configs = {sm: launch_config(torch_types[kind], batch, heads, block_size, sm) for sm in CAPABILITIES}
        wgmma = {90: "wgmma"} if configs[90].tiles["rows"] == 64 else {}
        return CompiledForm(
            _mla_decode, name, types, constants, configs, ("split_tokens", "heads", "block_stride"), wgmma
        )

    forms = [form("bf16", heads, size) for heads in (16, 32, 128) for size in BLOCK_SIZES]
    forms += [form("bf16", heads, size, batch=1) for heads in (16, 128) for size in (16, 64)]
    forms += [form("fp16", 16), form("fp16", 128), form("bf16", 16, split=False), form("bf16", 128, split=False)]
    return [*forms, form("fp32", 16), *reduction_forms(("bf16", "fp16"), (LATENT_DIM,))]
