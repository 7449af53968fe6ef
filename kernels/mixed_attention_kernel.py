"""The kernel of ``mixed_attention``: programs of decodes, then those of ``flash_prefill``."""

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
from kernels.flash_prefill_kernel import prefill_program


@triton.jit
def decode_program(
    sequence,
    kv_head,
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
    block_g: tl.constexpr,
    block_d: tl.constexpr,
    block_n: tl.constexpr,
):
    """Attend from the one new token of a sequence, in all heads of a group, to its prefix and itself."""
    group: tl.constexpr = heads // kv_heads
    rows = tl.arange(0, block_g)
    columns = tl.arange(0, block_d)
    stored = (rows < group)[:, None] & (columns < head_dim)[None, :]
    token = tl.load(query_starts + sequence)
    offsets = (kv_head * group + rows)[:, None] * head_dim + columns[None, :]
    q = tl.load(queries + token.to(tl.int64) * query_stride + offsets, mask=stored, other=0.0)
    sink = None if sinks is None else tl.load(sinks + kv_head * group + rows, mask=rows < group, other=0.0)
    acc, total, peak = before_any_block(sink, block_g, block_d)
    prefix, table = prefix_of(sequence, prefix_lengths, block_tables, table_stride)
    first = first_seen(prefix, window, block_n)
    query = tl.zeros([block_g], tl.int32)  # all rows are the first new token
    acc, total, peak = over_prefix(
        acc, total, peak, q, prefix + query, first, prefix, prefix, table, key_cache, value_cache, key_scales,
        value_scales, kv_head, scale_log2, kv_heads, block_size, head_dim, window, soft_cap, True, block_n,
    )  # fmt: skip
    acc, total, peak = over_new(
        acc, total, peak, q, query, 0, 1, 1, token, keys, values, key_stride, value_stride, kv_head, scale_log2,
        head_dim, 0, soft_cap, True, 16, False,
    )  # fmt: skip
    store_average(out + token.to(tl.int64) * heads * head_dim, offsets, acc, total, stored)


@triton.jit
def mixed_attention_kernel(
    queries,
    keys,
    values,
    key_descriptor,
    value_descriptor,
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
    decodes,
    tiles,
    heads: tl.constexpr,
    kv_heads: tl.constexpr,
    head_dim: tl.constexpr,
    block_size: tl.constexpr,
    window: tl.constexpr,
    soft_cap: tl.constexpr,
    block_g: tl.constexpr,
    block_d: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    decode_n: tl.constexpr,
    descriptors: tl.constexpr,
):
    """Grid: decodes by key heads, then chunks by heads by tiles. Chunks load by the descriptors where there are any."""
    program = tl.program_id(0)
    if program < decodes * kv_heads:
        decode_program(
            program // kv_heads, program % kv_heads, queries, keys, values, out, query_starts, sinks, key_cache,
            value_cache, key_scales, value_scales, block_tables, prefix_lengths, query_stride, key_stride, value_stride,
            table_stride, scale_log2, heads, kv_heads, head_dim, block_size, window, soft_cap, block_g, block_d,
            decode_n,
        )  # fmt: skip
    else:
        work = program - decodes * kv_heads
        sequence = decodes + work // tiles // heads
        sequence_start = tl.load(query_starts + sequence)
        length = tl.load(query_starts + sequence + 1) - sequence_start
        tile_start = (tiles - 1 - work % tiles) * block_m
        if tile_start < length:
            prefill_program(
                tile_start, work // tiles % heads, sequence, sequence_start, length, queries,
                key_descriptor if descriptors else keys,
                value_descriptor if descriptors else values,
                out, sinks, key_cache, value_cache, key_scales, value_scales, block_tables, prefix_lengths,
                query_stride, key_stride, value_stride, table_stride, scale_log2, heads, kv_heads, head_dim, block_size,
                window, soft_cap, block_d, block_m, block_n, descriptors,
            )  # fmt: skip
