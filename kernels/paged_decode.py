"""Decode attention: the query of each request's last token against its paged keys and values.

Such a step reads every key and value once and computes little, so the kernel is made to keep loads in flight. A program
takes all query heads of one KV head, to read that head's cache once, and a part of the context, so that there are
programs enough for the chip (``kernels/split_reduction.py``). Its loop reads tiles of tokens through the block table,
several tiles ahead of the arithmetic, which is the online softmax of FlashAttention (Dao et al., 2022). Logits are kept
in base 2, for there is an instruction for ``2**x``.
"""

from itertools import product
from typing import Any

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.decode_steps import load_blocks, slots_in_blocks, softmax_step
from kernels.errors import UnsupportedFormError, require_form, require_rows
from kernels.launch import LaunchConfig, capability, operation
from kernels.paged_decode_config import default_splits, launch_config, rows_of
from kernels.paged_decode_reference import paged_decode_reference
from kernels.split_reduction import (
    multiprocessors,
    reduce_splits,
    reduction_forms,
    split_evenly,
)

HEAD_DIMS = (64, 96, 128, 256)
BLOCK_SIZES = tuple(range(16, 129, 16))
QUERY_TYPES = (torch.float16, torch.bfloat16, torch.float32)
QUANTISED_TYPES = (torch.float8_e4m3fn, torch.int8)
_NO_WINDOW = 2**31 - 1


@triton.jit
def _paged_decode(
    q, key_cache, value_cache, key_scales, value_scales, block_tables, context_lengths, sinks,
    out, partial, log_sums,
    scale, soft_cap, window, split_tokens, kv_heads, group, table_width, block_stride,
    head_dim: tl.constexpr, padded_dim: tl.constexpr, block_size: tl.constexpr, rows: tl.constexpr,
    capped: tl.constexpr, compute: tl.constexpr, tile_tokens: tl.constexpr,
):  # fmt: skip
    split, splits = tl.program_id(0), tl.num_programs(0)
    row_tiles = tl.cdiv(group, rows)
    kv_head = tl.program_id(1) // row_tiles
    member = tl.program_id(1) % row_tiles * rows + tl.arange(0, rows)
    request = tl.program_id(2).to(tl.int64)
    head = request * kv_heads * group + kv_head * group + member
    present = member < group

    length = tl.load(context_lengths + request)
    first = tl.maximum(length - window, 0)
    begin = first // tile_tokens * tile_tokens + split * split_tokens
    end = tl.where(split == splits - 1, length, tl.minimum(begin + split_tokens, length))
    if log_sums is not None:  # noqa: SIM102 (the compiler looks into joint conditions)
        if begin >= length:
            tl.store(log_sums + head * splits + split, tl.full([rows], float("-inf"), tl.float32), mask=present)
            return

    dim = tl.arange(0, padded_dim)
    query_mask = present[:, None] & (dim < head_dim)[None, :]
    query = tl.load(q + head[:, None] * head_dim + dim[None, :], mask=query_mask, other=0.0)
    if not capped:
        scale *= 1.4426950408889634  # log2(e): logits in base 2
    row_scale = tl.full([rows], scale, tl.float32)
    if compute != q.dtype.element_ty:  # a narrower range: bring the queries into it
        peak = tl.maximum(tl.max(tl.abs(query.to(tl.float32)), 1), 1e-30)
        query = query.to(tl.float32) / peak[:, None]
        row_scale *= peak
    query = query.to(compute)
    key_cache += kv_head * block_size * head_dim
    value_cache += kv_head * block_size * head_dim
    block_tables += request * table_width

    highest = tl.full([rows], float("-inf"), tl.float32)
    weights = tl.zeros([rows], tl.float32)
    total = tl.zeros([rows, padded_dim], tl.float32)
    block = load_blocks(block_tables, begin, length, block_size, tile_tokens)
    for start in range(begin, end, tile_tokens):
        token = start + tl.arange(0, tile_tokens)
        inside = (token >= first) & (token < length)
        slot = slots_in_blocks(start, block_size, tile_tokens)
        block_now = block.to(tl.int64)
        block = load_blocks(block_tables, start + tile_tokens, length, block_size, tile_tokens)
        place = (block_now * block_stride + slot * head_dim)[:, None] + dim[None, :]
        mask = inside[:, None]
        if head_dim < padded_dim:
            mask = mask & (dim < head_dim)[None, :]

        keys = tl.load(key_cache + place, mask=mask, other=0.0)
        logits = tl.dot(query, tl.trans(keys.to(compute)), input_precision="ieee") * row_scale[:, None]
        if key_scales is not None:
            scale_place = (block_now * kv_heads + kv_head) * block_size + slot
            logits *= tl.load(key_scales + scale_place, mask=inside, other=0.0)[None, :]
        if capped:
            logits = soft_cap * (1.4426950408889634 - 2.8853900817779268 / (tl.exp(2 * logits / soft_cap) + 1))
        logits = tl.where(inside[None, :], logits, float("-inf"))

        weight, rescale, highest, weights = softmax_step(logits, highest, weights)
        total *= rescale[:, None]

        values = tl.load(value_cache + place, mask=mask, other=0.0).to(compute)
        if value_scales is None:
            total = tl.dot(weight.to(compute), values, total, input_precision="ieee")
        else:
            scale_place = (block_now * kv_heads + kv_head) * block_size + slot
            value_scale = tl.load(value_scales + scale_place, mask=inside, other=0.0)
            largest = tl.maximum(tl.max(value_scale, 0), 1e-30)  # taken out, or small scales would underflow
            weight *= (value_scale / largest)[None, :]
            values = tl.where(inside[:, None], values, 0.0)  # converted before, not after, threads exchange them
            total += tl.dot(weight.to(compute), values, input_precision="ieee") * largest

    if log_sums is not None:
        tl.store(log_sums + head * splits + split, highest + tl.log2(weights), mask=present)
        place = (head * splits + split)[:, None] * head_dim + dim[None, :]
        tl.store(partial + place, total / weights[:, None], mask=query_mask)
    else:
        if sinks is not None:
            sink = tl.load(sinks + kv_head * group + member, mask=present, other=0.0) * 1.4426950408889634
            higher = tl.maximum(highest, sink)
            rescale = tl.exp2(highest - higher)
            total *= rescale[:, None]
            weights = weights * rescale + tl.exp2(sink - higher)
        total = total / tl.where(weights == 0.0, 1.0, weights)[:, None]  # zero for an empty context
        tl.store(out + head[:, None] * head_dim + dim[None, :], total.to(out.dtype.element_ty), mask=query_mask)


def _compute_type(query: torch.dtype, cache: torch.dtype) -> tl.dtype:
    """What tensor cores are fed: the queries' type, but float16 for fp8 caches, for hardware converts those to it."""
    if query == torch.float32:
        return tl.float32
    half = query == torch.float16 or cache == torch.float8_e4m3fn
    return tl.float16 if half else tl.bfloat16


def _check(
    q: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor, block_tables: torch.Tensor, *_: Any, **__: Any
) -> None:
    require_form("paged_decode", "query type", q.dtype, QUERY_TYPES)
    require_form("paged_decode", "cache type", key_cache.dtype, (q.dtype, *QUANTISED_TYPES))
    require_form("paged_decode", "head dimension", q.shape[2], HEAD_DIMS)
    require_form("paged_decode", "block size", key_cache.shape[2], BLOCK_SIZES)
    require_form("paged_decode", "type of value_cache", value_cache.dtype, [key_cache.dtype])
    require_form("paged_decode", "value cache strides", value_cache.stride(), [key_cache.stride()])
    inner = (key_cache.shape[2] * key_cache.shape[3], key_cache.shape[3], 1)
    require_form("paged_decode", "strides within a block", key_cache.stride()[1:], [inner])
    if q.shape[1] % key_cache.shape[1]:
        kv_heads = key_cache.shape[1]
        raise UnsupportedFormError("paged_decode", "heads", q.shape[1], [f"multiples of its {kv_heads} kv_heads"])
    require_rows("paged_decode", "block_tables", block_tables)


@operation(paged_decode_reference, _check, strided=("key_cache", "value_cache", "block_tables"))
def paged_decode(
    q: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_tables: torch.Tensor,
    context_lengths: torch.Tensor,
    scale: float,
    *,
    window: int = 0,
    soft_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
    key_scales: torch.Tensor | None = None,
    value_scales: torch.Tensor | None = None,
    splits: int | None = None,
    max_context_tokens: int,
    config: LaunchConfig | None = None,
) -> torch.Tensor:
    """Attention of one query token per request to its context: [batch, heads, head_dim] in the type of ``q``.

    ``q`` [batch, heads, head_dim]; caches [num_blocks, kv_heads, block_size, head_dim] in the type of ``q``, fp8 (e4m3)
    or int8, each block contiguous. ``key_scales`` and ``value_scales`` [num_blocks, kv_heads, block_size] in float32
    multiply each token of a quantised cache. ``block_tables`` int32 [batch, blocks]; ``context_lengths`` int32 [batch]
    count the query's own token, and a request without context gets zeros. ``window`` (0: none) is how many of the last
    tokens are seen, ``soft_cap`` (0: none) the bound that tanh puts on logits, ``sinks`` float32 [heads] logits that
    only the softmax denominator has. ``max_context_tokens``, which should be the longest context, and ``splits``, by
    default chosen to fill the chip, set how contexts are divided; the result does not depend on them but for rounding.

    Raises ``UnsupportedFormError`` for other types, head dimensions or block sizes.
    """
    batch, heads, head_dim = q.shape
    kv_heads, block_size = key_cache.shape[1:3]
    out = torch.empty_like(q)
    if not batch:
        return out
    padded_dim = triton.next_power_of_2(head_dim)
    group = heads // kv_heads
    rows = rows_of(group)
    chip = capability(q.device)
    config = config or launch_config(key_cache.dtype, head_dim, group, capped=soft_cap > 0, chip=chip)
    tile_tokens = config.tiles["tile_tokens"]

    seen_tokens = min(window + tile_tokens, max_context_tokens) if window else max_context_tokens
    programs = kv_heads * triton.cdiv(group, rows)
    if splits is None:
        processors = multiprocessors(q.device)
        splits = default_splits(batch, heads, kv_heads, head_dim, key_cache.dtype, seen_tokens, config, processors)
    split_tokens, splits = split_evenly(seen_tokens, splits, tile_tokens)

    partial = log_sums = None
    if splits > 1:
        partial = torch.empty((batch, heads, splits, head_dim), dtype=torch.float32, device=q.device)
        log_sums = torch.empty((batch, heads, splits), dtype=torch.float32, device=q.device)
    _paged_decode[(splits, programs, batch)](
        q, key_cache, value_cache, key_scales, value_scales, block_tables, context_lengths, sinks,
        out, partial, log_sums,
        scale, soft_cap, window or _NO_WINDOW, split_tokens, kv_heads, group,
        block_tables.stride(0), key_cache.stride(0),
        head_dim=head_dim, padded_dim=padded_dim, block_size=block_size, rows=rows,
        capped=soft_cap > 0, compute=_compute_type(q.dtype, key_cache.dtype),
        **config.arguments(),
    )  # fmt: skip
    if partial is not None and log_sums is not None:
        reduce_splits(partial, log_sums, sinks, out)
    return out


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernel, for ahead-of-time compilation."""
    torch_types = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
    torch_types |= {"fp8e4nv": torch.float8_e4m3fn, "i8": torch.int8}

    def form(
        query: str, cache: str, head_dim: int = 128, block_size: int = 16, rows: int = 16,
        capped: bool = False, sinks: bool = False, split: bool = True,
    ) -> CompiledForm:  # fmt: skip
        scaled = cache in ("fp8e4nv", "i8")
        types = {"q": f"*{query}", "key_cache": f"*{cache}", "value_cache": f"*{cache}", "out": f"*{query}"}
        types |= {"block_tables": "*i32", "context_lengths": "*i32", "scale": "fp32", "soft_cap": "fp32"}
        types |= dict.fromkeys(("window", "split_tokens", "kv_heads", "group", "table_width", "block_stride"), "i32")
        optional = {"key_scales": scaled, "value_scales": scaled, "sinks": sinks, "partial": split, "log_sums": split}
        types |= {name: "*fp32" for name, present in optional.items() if present}
        padded_dim = triton.next_power_of_2(head_dim)
        constants = {
            "head_dim": head_dim, "padded_dim": padded_dim, "block_size": block_size, "rows": rows, "capped": capped,
            "compute": _compute_type(torch_types[query], torch_types[cache]),
            **{name: None for name, present in optional.items() if not present},
        }  # fmt: skip
        words = [query, cache, f"head_dim {head_dim}", f"block_size {block_size}", f"rows {rows}"]
        words += [
            word for word, present in (("soft_cap", capped), ("sinks", sinks), ("one split", not split)) if present
        ]
        capabilities = (90, 100) if cache == "fp8e4nv" else CAPABILITIES
        configs = {
            chip: launch_config(torch_types[cache], head_dim, rows, capped=capped, chip=chip) for chip in capabilities
        }
        return CompiledForm(_paged_decode, " ".join(words), types, constants, configs, ("split_tokens", "block_stride"))

    caches = ("bf16", "fp8e4nv", "i8")
    forms = [form("bf16", cache, head_dim) for cache in caches for head_dim in HEAD_DIMS]
    forms += [form("bf16", cache, block_size=size) for cache in caches for size in (64, 128)]
    forms += [form("bf16", cache, rows=32) for cache in caches]
    forms += [form("fp16", cache) for cache in ("fp16", "fp8e4nv", "i8")]
    forms += [form("bf16", "bf16", 64, capped=True, sinks=True, split=False), form("bf16", "bf16", split=False)]
    forms += [form("bf16", "bf16", 256, rows=32), form("fp32", "fp32")]
    forms += [
        form("bf16", cache, head_dim, rows=rows, capped=True, sinks=True, split=False)
        for cache, head_dim, rows in product(caches, HEAD_DIMS, (16, 32))
        if (cache, head_dim, rows) != ("bf16", 64, 16)  # that is among the above
    ]
    return [*forms, *reduction_forms(("bf16", "fp16"), HEAD_DIMS)]
