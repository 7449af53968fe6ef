"""The Triton kernel of prefill attention: a program is one tile of queries of one head of one sequence."""

import triton
import triton.language as tl

from kernels.attention_blocks import (
    before_any_block,
    first_seen,
    over_new,
    over_prefix,
    prefix_of,
    store_average,
)


@triton.jit
def prefill_tile(
    acc,
    total,
    peak,
    q,
    tile_start,
    length,
    sequence,
    sequence_start,
    keys,
    values,
    key_cache,
    value_cache,
    key_scales,
    value_scales,
    block_tables,
    prefix_lengths,
    key_stride,
    value_stride,
    table_stride,
    kv_head,
    scale_log2,
    kv_heads: tl.constexpr,
    head_dim: tl.constexpr,
    block_size: tl.constexpr,
    window: tl.constexpr,
    soft_cap: tl.constexpr,
    block_n: tl.constexpr,
    descriptors: tl.constexpr,
):
    """Attend from a tile of queries to the prefix, if there is one, and to new tokens."""
    block_m: tl.constexpr = q.shape[0]
    rows = tile_start + tl.arange(0, block_m)
    if key_cache is not None:
        prefix, table = prefix_of(sequence, prefix_lengths, block_tables, table_stride)
        seen = first_seen(prefix + tile_start, window, block_n)
        tail = tl.maximum(prefix // block_n * block_n, seen)
        acc, total, peak = over_prefix(
            acc, total, peak, q, prefix + rows, seen, tail, prefix, table, key_cache, value_cache, key_scales,
            value_scales, kv_head, scale_log2, kv_heads, block_size, head_dim, window, soft_cap, window > 0, block_n,
        )  # fmt: skip
        acc, total, peak = over_prefix(
            acc, total, peak, q, prefix + rows, tail, prefix, prefix, table, key_cache, value_cache, key_scales,
            value_scales, kv_head, scale_log2, kv_heads, block_size, head_dim, window, soft_cap, True, block_n,
        )  # fmt: skip
    # Blocks before the diagonal need no mask, save those that the window's far edge crosses.
    diagonal = tile_start // block_n * block_n
    first = first_seen(tile_start, window, block_n)
    if window > 0:
        whole = tl.maximum(tile_start + block_m - window + block_n - 1, 0) // block_n * block_n
        whole = tl.minimum(tl.maximum(whole, first), diagonal)
        acc, total, peak = over_new(
            acc, total, peak, q, rows, first, whole, length, sequence_start, keys, values, key_stride, value_stride,
            kv_head, scale_log2, head_dim, window, soft_cap, True, block_n, descriptors,
        )  # fmt: skip
        first = whole
    acc, total, peak = over_new(
        acc, total, peak, q, rows, first, diagonal, length, sequence_start, keys, values, key_stride, value_stride,
        kv_head, scale_log2, head_dim, window, soft_cap, False, block_n, descriptors,
    )  # fmt: skip
    return over_new(
        acc, total, peak, q, rows, diagonal, tl.minimum(tile_start + block_m, length), length, sequence_start, keys,
        values, key_stride, value_stride, kv_head, scale_log2, head_dim, window, soft_cap, True, block_n, descriptors,
    )  # fmt: skip


@triton.jit
def prefill_program(
    tile_start,
    head,
    sequence,
    sequence_start,
    length,
    queries,
    keys,
    values,
    out,
    sinks,
    key_cache,
    value_cache,
    key_scales,
    value_scales,
    block_tables,
    prefix_lengths,
    query_stride,
    key_stride,
    value_stride,
    table_stride,
    scale_log2,
    heads: tl.constexpr,
    kv_heads: tl.constexpr,
    head_dim: tl.constexpr,
    block_size: tl.constexpr,
    window: tl.constexpr,
    soft_cap: tl.constexpr,
    block_d: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    descriptors: tl.constexpr,
):
    """Attend from the tile of queries that begins at ``tile_start`` of a sequence, and store."""
    kv_head = head // (heads // kv_heads)
    rows = tile_start + tl.arange(0, block_m)
    columns = tl.arange(0, block_d)
    stored = (rows < length)[:, None] & (columns < head_dim)[None, :]
    at = (sequence_start + rows).to(tl.int64)[:, None]
    sink = None if sinks is None else tl.load(sinks + head)
    acc, total, peak = before_any_block(sink, block_m, block_d)
    q = tl.load(queries + at * query_stride + head * head_dim + columns[None, :], mask=stored, other=0.0)
    acc, total, peak = prefill_tile(
        acc, total, peak, q, tile_start, length, sequence, sequence_start, keys, values, key_cache, value_cache,
        key_scales, value_scales, block_tables, prefix_lengths, key_stride, value_stride, table_stride, kv_head,
        scale_log2, kv_heads, head_dim, block_size, window, soft_cap, block_n, descriptors,
    )  # fmt: skip
    store_average(out, (at * heads + head) * head_dim + columns[None, :], acc, total, stored)


@triton.jit
def flash_prefill_kernel(
    queries,
    keys,
    values,
    out,
    query_starts,
    sinks,
    key_cache,
    value_cache,
    key_scales,
    value_scales,
    block_tables,
    prefix_lengths,
    query_stride,
    key_stride,
    value_stride,
    table_stride,
    scale_log2,
    heads: tl.constexpr,
    kv_heads: tl.constexpr,
    head_dim: tl.constexpr,
    block_size: tl.constexpr,
    window: tl.constexpr,
    soft_cap: tl.constexpr,
    block_d: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    descriptors: tl.constexpr,
):
    """Grid: (query tiles, heads, sequences). Tiles fastest, so that programs at work share the keys of one head."""
    head = tl.program_id(1)
    sequence = tl.program_id(2)
    sequence_start = tl.load(query_starts + sequence)
    length = tl.load(query_starts + sequence + 1) - sequence_start
    # The last tile has most keys: it starts first, so that short ones fill the gaps at the end.
    tile_start = (tl.num_programs(0) - 1 - tl.program_id(0)) * block_m
    if tile_start >= length:
        return
    prefill_program(
        tile_start, head, sequence, sequence_start, length, queries, keys, values, out, sinks, key_cache, value_cache,
        key_scales, value_scales, block_tables, prefix_lengths, query_stride, key_stride, value_stride, table_stride,
        scale_log2, heads, kv_heads, head_dim, block_size, window, soft_cap, block_d, block_m, block_n, descriptors,
    )  # fmt: skip
