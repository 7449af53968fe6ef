"""Blocks of keys and values, taken in one after another: what the attention kernels share.

Online softmax after Dao, FlashAttention-2 (arXiv:2307.08691, algorithm 1): a program walks over blocks of keys and
keeps, for each row, the greatest score so far (``peak``), the sum of weights relative to it (``total``) and the
weighted sum of values (``acc``). ``peak`` is in units of log2, so that the exponential is the hardware's exp2; it
starts at a finite number below any score, so that a block with nothing visible changes nothing.
"""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)
LOWEST = tl.constexpr(-1.0e30)


@triton.jit
def before_any_block(sink, rows: tl.constexpr, width: tl.constexpr):
    """``acc``, ``total`` and ``peak`` of nothing seen but a sink: a logit, one for each row, or none."""
    if sink is None:
        total = tl.zeros([rows], tl.float32)
        peak = tl.full([rows], LOWEST, tl.float32)
    else:
        total = tl.full([rows], 1.0, tl.float32)
        peak = tl.zeros([rows], tl.float32) + sink * LOG2_E
    return tl.zeros([rows, width], tl.float32), total, peak


@triton.jit
def score_block(q, k, key_scale, scale_log2, soft_cap: tl.constexpr):
    """Products of queries and keys; where there is a soft cap they are scaled, capped and in log2 units."""
    scores = tl.dot(q, tl.trans(k), input_precision="ieee")
    if key_scale is not None:
        scores = scores * key_scale[None, :]
    if soft_cap > 0:
        doubled = scores * (2 * scale_log2 / soft_cap)
        scores = soft_cap * LOG2_E - (2 * soft_cap * LOG2_E) / (tl.exp2(doubled) + 1)  # by the hyperbolic tangent
    return scores


@triton.jit
def mask_block(scores, visible, rows, tokens, window: tl.constexpr):
    """Scores, and minus infinity where the key is not visible, or too far before the query for the window."""
    if window > 0:
        visible = visible & ((rows - window)[:, None] < tokens[None, :])
    return tl.where(visible, scores, float("-inf"))


@triton.jit
def first_seen(position, window: tl.constexpr, block_n: tl.constexpr):
    """Where the block of keys begins that holds the first one that a query at ``position`` sees."""
    if window > 0:
        first = tl.maximum(position - window + 1, 0) // block_n * block_n
    else:
        first = 0
    return first


@triton.jit
def prefix_of(sequence, prefix_lengths, block_tables, table_stride):
    """The tokens of a sequence's prefix, and its row of the block tables."""
    return tl.load(prefix_lengths + sequence), block_tables + sequence.to(tl.int64) * table_stride


@triton.jit
def store_average(out, offsets, acc, total, mask):
    """Store the weighted sums of values, divided by the sums of weights."""
    tl.store(out + offsets, (acc / total[:, None]).to(out.dtype.element_ty), mask=mask)


@triton.jit
def _load_rows(pointers, present):
    if present is None:
        rows = tl.load(pointers)
    else:
        rows = tl.load(pointers, mask=present, other=0.0)
    return rows


@triton.jit
def add_block(acc, total, peak, scores, v, value_scale, factor):
    """Take in one block: its scores (times ``factor``: in log2 units), its values, and their scale or none."""
    new_peak = tl.maximum(peak, tl.max(scores, 1) * factor)
    weights = tl.exp2(scores * factor - new_peak[:, None])
    shrink = tl.exp2(peak - new_peak)
    total = total * shrink + tl.sum(weights, 1)
    if value_scale is not None:
        weights = weights * value_scale[None, :]
    acc = tl.dot(weights.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
    return acc, total, new_peak


@triton.jit
def over_prefix(
    acc,
    total,
    peak,
    q,
    positions_q,
    first,
    last,
    prefix,
    table,
    key_cache,
    value_cache,
    key_scales,
    value_scales,
    kv_head,
    scale_log2,
    kv_heads: tl.constexpr,
    block_size: tl.constexpr,
    head_dim: tl.constexpr,
    window: tl.constexpr,
    soft_cap: tl.constexpr,
    masked: tl.constexpr,
    block_n: tl.constexpr,
):
    """Attend to positions ``first`` to ``last`` of a paged prefix, which the block table gathers."""
    columns = tl.arange(0, q.shape[1])
    factor = scale_log2 if soft_cap == 0 else 1.0
    for start in tl.range(first, last, block_n):
        positions = start + tl.arange(0, block_n)
        inside = positions < prefix
        block = tl.load(table + positions // block_size, mask=inside if masked else None)
        slots = (block.to(tl.int64) * kv_heads + kv_head) * block_size + positions % block_size
        offsets = slots[:, None] * head_dim + columns[None, :]
        if masked:
            present = inside[:, None] & (columns < head_dim)[None, :]
        else:
            present = (columns < head_dim)[None, :]
        k = tl.load(key_cache + offsets, mask=present, other=0.0).to(q.dtype)
        v = tl.load(value_cache + offsets, mask=present, other=0.0).to(q.dtype)
        key_scale = None
        value_scale = None
        if key_scales is not None:
            key_scale = tl.load(key_scales + slots, mask=inside, other=0.0)
            value_scale = tl.load(value_scales + slots, mask=inside, other=0.0)
        scores = score_block(q, k, key_scale, scale_log2, soft_cap)
        if masked:
            scores = mask_block(scores, inside[None, :], positions_q, positions, window)
        acc, total, peak = add_block(acc, total, peak, scores, v, value_scale, factor)
    return acc, total, peak


@triton.jit
def over_new(
    acc,
    total,
    peak,
    q,
    rows,
    first,
    last,
    length,
    sequence_start,
    keys,
    values,
    key_stride,
    value_stride,
    kv_head,
    scale_log2,
    head_dim: tl.constexpr,
    window: tl.constexpr,
    soft_cap: tl.constexpr,
    masked: tl.constexpr,
    block_n: tl.constexpr,
    descriptors: tl.constexpr,
):
    """Attend to new tokens ``first`` to ``last`` of the sequence; ``keys`` and ``values`` are descriptors or pointers.

    A descriptor's block may reach into the next sequence: its values are zeroed, lest not-a-number there spread.
    """
    columns = tl.arange(0, q.shape[1])
    factor = scale_log2 if soft_cap == 0 else 1.0
    for start in tl.range(first, last, block_n):
        tokens = start + tl.arange(0, block_n)
        if descriptors:
            k = keys.load([sequence_start + start, kv_head, 0]).reshape([block_n, q.shape[1]])
            v = values.load([sequence_start + start, kv_head, 0]).reshape([block_n, q.shape[1]])
            if masked:
                v = tl.where((tokens < length)[:, None], v, 0.0)
        else:
            at = (sequence_start + tokens).to(tl.int64)[:, None]
            offsets = kv_head * head_dim + columns[None, :]
            if masked:
                present = (tokens < length)[:, None] & (columns < head_dim)[None, :]
            elif head_dim < q.shape[1]:
                present = (columns < head_dim)[None, :]
            else:
                present = None
            k = _load_rows(keys + at * key_stride + offsets, present)
            v = _load_rows(values + at * value_stride + offsets, present)
        scores = score_block(q, k, None, scale_log2, soft_cap)
        if masked:
            scores = mask_block(scores, rows[:, None] >= tokens[None, :], rows, tokens, window)
        acc, total, peak = add_block(acc, total, peak, scores, v, None, factor)
    return acc, total, peak
