"""The GEMM ``a [m, k] @ weight [n, k].T`` tile by tile, in two kernels that share how a tile is found and finished.

``tma_tiles`` is for whole tiles on sm_90 and later: as many programs as the chip runs at once walk over all of them,
and the copy engine (TMA) fetches them. ``pointer_tiles`` is for too few tiles, older chips and shapes that TMA cannot
address: one program a tile, or ``splits`` programs that share the k of a tile, whose sums ``sum_splits`` adds.

Both take 16-bit floats, float32, int8 (summed in int32) and fp8, and scales of the operands in one of these forms:

- none: ``a_scales`` and ``weight_scales`` are None;
- applied to the finished sum: one scale for all, or one a row (``per_token``) and one a column (``per_channel``);
- ``block_scales``: one for each row and 128 columns of ``a``, and one for each 128 x 128 of ``weight``. Each 128 of k
  is summed by itself, scaled, and added in float32 (DeepSeek-V3, arXiv 2412.19437, section 3.3.2).

Tensor cores of sm_89 and sm_90 sum fp8 products with fewer bits than float32 has (about 14, by the same section).
``promote`` bounds what is lost: each ``block_k`` is summed by itself and added in float32, which takes a second set of
registers for the sum.
"""

import triton
import triton.language as tl

SCALE_BLOCK = tl.constexpr(128)


@triton.jit
def _tile_at(tile, m, n, block_m: tl.constexpr, block_n: tl.constexpr, group_m: tl.constexpr):
    """Row and column of the corner of a tile. Tiles go down ``group_m`` of them, then right, so that L2 is reused."""
    tiles_m, tiles_n = tl.cdiv(m, block_m), tl.cdiv(n, block_n)
    group = tile // (group_m * tiles_n)
    height = tl.minimum(tiles_m - group * group_m, group_m)
    within = tile % (group_m * tiles_n)
    return (group * group_m + within % height) * block_m, within // height * block_n


@triton.jit
def _scale_of_block(a_scales, weight_scales, rows, column, at, m, k):
    """What multiplies the sums [rows] over the 128 of k that hold ``at``, in the columns from ``column`` on."""
    block, blocks = at // SCALE_BLOCK, tl.cdiv(k, SCALE_BLOCK)
    a_scale = tl.load(a_scales + rows * blocks + block, mask=rows < m, other=0.0)
    return a_scale * tl.load(weight_scales + column // SCALE_BLOCK * blocks + block)


@triton.jit
def _no_sum(height: tl.constexpr, width: tl.constexpr, item: tl.constexpr, block_scales: tl.constexpr):
    """Zeros, of the type that products of such items are summed in."""
    whole: tl.constexpr = item == tl.int8 and not block_scales
    return tl.zeros((height, width), tl.int32 if whole else tl.float32)


@triton.jit
def _add_product(total, first, second, scale, promote: tl.constexpr):
    """``total + first @ second``; apart, and times ``scale``, where there is one; apart too if ``promote``."""
    dot_type: tl.constexpr = tl.int32 if first.dtype == tl.int8 else tl.float32
    run: tl.constexpr = first.shape[1] if promote and first.dtype.is_fp8() else None
    if scale is not None:
        product = tl.dot(first, second, max_num_imprecise_acc=run, out_dtype=dot_type)
        total += product.to(tl.float32) * scale
    elif promote:
        total += tl.dot(first, second, max_num_imprecise_acc=run, out_dtype=dot_type)
    else:
        total = tl.dot(first, second, total, input_precision="ieee", out_dtype=dot_type)
    return total


@triton.jit
def _finished(
    total, rows, columns, m, n, bias, a_scales, weight_scales,
    per_token: tl.constexpr, per_channel: tl.constexpr, block_scales: tl.constexpr,
):  # fmt: skip
    """The sum [rows, columns] in float32, with the bias added, and scaled but for scales of blocks."""
    total = total.to(tl.float32)
    if a_scales is not None and not block_scales:
        if per_token:
            total *= tl.load(a_scales + rows, mask=rows < m, other=0.0)[:, None]
        else:
            total *= tl.load(a_scales)
        if per_channel:
            total *= tl.load(weight_scales + columns, mask=columns < n, other=0.0)[None, :]
        else:
            total *= tl.load(weight_scales)
    if bias is not None:
        total += tl.load(bias + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]
    return total


@triton.jit
def tma_tiles(
    a,
    weight,
    out,
    bias,
    a_scales,
    weight_scales,
    m,
    n,
    k,
    per_token: tl.constexpr,
    per_channel: tl.constexpr,
    block_scales: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    block_k: tl.constexpr,
    group_m: tl.constexpr,
    store_n: tl.constexpr,
    promote: tl.constexpr,
):
    """All tiles, by tensor descriptors of ``a``, ``weight`` and ``out``, which they enter by ``store_n`` columns."""
    tiles = tl.cdiv(m, block_m) * tl.cdiv(n, block_n)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        row, column = _tile_at(tile, m, n, block_m, block_n, group_m)
        rows = row + tl.arange(0, block_m)
        total = _no_sum(block_m, block_n, a.dtype, block_scales)
        for at in range(0, k, block_k):
            a_tile = a.load([row, at])
            weight_tile = weight.load([column, at]).T
            scale = None
            if block_scales:
                scale = _scale_of_block(a_scales, weight_scales, rows, column, at, m, k)[:, None]
            total = _add_product(total, a_tile, weight_tile, scale, promote)
        _store_strips(
            total, out, row, column, m, n, bias, a_scales, weight_scales, per_token, per_channel, block_scales, store_n
        )


@triton.jit
def _store_strips(
    total,
    out,
    row,
    column,
    m,
    n,
    bias,
    a_scales,
    weight_scales,
    per_token: tl.constexpr,
    per_channel: tl.constexpr,
    block_scales: tl.constexpr,
    store_n: tl.constexpr,
):
    """Finish and store a tile in halves of halves down to ``store_n`` columns: a strip needs less shared memory."""
    block_m: tl.constexpr = total.shape[0]
    block_n: tl.constexpr = total.shape[1]
    if block_n > store_n:
        left, right = total.reshape(block_m, 2, block_n // 2).permute(0, 2, 1).split()
        _store_strips(
            left, out, row, column, m, n, bias, a_scales, weight_scales, per_token, per_channel, block_scales, store_n
        )
        column += block_n // 2
        _store_strips(
            right, out, row, column, m, n, bias, a_scales, weight_scales, per_token, per_channel, block_scales, store_n
        )
    else:
        rows, columns = row + tl.arange(0, block_m), column + tl.arange(0, block_n)
        result = _finished(
            total, rows, columns, m, n, bias, a_scales, weight_scales, per_token, per_channel, block_scales
        )
        out.store([row, column], result.to(out.dtype))


@triton.jit
def pointer_tiles(
    a,
    weight,
    out,
    bias,
    a_scales,
    weight_scales,
    m,
    n,
    k,
    per_token: tl.constexpr,
    per_channel: tl.constexpr,
    block_scales: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    block_k: tl.constexpr,
    group_m: tl.constexpr,
    splits: tl.constexpr,
    promote: tl.constexpr,
):
    """One tile over one of ``splits`` parts of k; where there are several, ``out`` is [splits, m, n], of plain sums.

    The weight is the first operand of the product, so that its rows, not the few tokens, fill the 64 of a wgmma.
    """
    row, column = _tile_at(tl.program_id(0), m, n, block_m, block_n, group_m)
    rows, columns, steps = tl.arange(0, block_m), tl.arange(0, block_n), tl.arange(0, block_k)
    part = tl.cdiv(tl.cdiv(k, block_k), splits) * block_k
    first = tl.program_id(1) * part
    a += tl.cast(row, tl.int64) * k
    weight += tl.cast(column, tl.int64) * k
    total = _no_sum(block_n, block_m, a.dtype.element_ty, block_scales)
    for at in range(first, tl.minimum(first + part, k), block_k):
        inside = at + steps < k
        a_tile = tl.load(
            a + rows[:, None] * k + (at + steps)[None, :],
            mask=(row + rows < m)[:, None] & inside[None, :],
            other=0.0,
        )
        weight_tile = tl.load(
            weight + columns[:, None] * k + (at + steps)[None, :],
            mask=(column + columns < n)[:, None] & inside[None, :],
            other=0.0,
        )
        scale = None
        if block_scales:
            scale = _scale_of_block(a_scales, weight_scales, row + rows, column, at, m, k)[None, :]
        total = _add_product(total, weight_tile, a_tile.T, scale, promote)
    rows, columns = row + rows, column + columns
    places = rows.to(tl.int64)[:, None] * n + columns[None, :]
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    if splits > 1:
        out += tl.program_id(1).to(tl.int64) * m * n
        tl.store(out + places, total.T, mask=inside)
    else:
        result = _finished(
            total.T, rows, columns, m, n, bias, a_scales, weight_scales, per_token, per_channel, block_scales
        )
        tl.store(out + places, result.to(out.dtype.element_ty), mask=inside)


@triton.jit
def sum_splits(
    sums,
    out,
    bias,
    a_scales,
    weight_scales,
    m,
    n,
    per_token: tl.constexpr,
    per_channel: tl.constexpr,
    block_scales: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    splits: tl.constexpr,
):
    """``out`` from the sums [splits, m, n] that ``pointer_tiles`` left, always added in the same order."""
    rows = tl.program_id(0) * block_m + tl.arange(0, block_m)
    columns = tl.program_id(1) * block_n + tl.arange(0, block_n)
    places = rows.to(tl.int64)[:, None] * n + columns[None, :]
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    total = tl.zeros((block_m, block_n), sums.dtype.element_ty)
    for _ in tl.static_range(splits):
        total += tl.load(sums + places, mask=inside, other=0)
        sums += tl.cast(m, tl.int64) * n
    result = _finished(total, rows, columns, m, n, bias, a_scales, weight_scales, per_token, per_channel, block_scales)
    tl.store(out + places, result.to(out.dtype.element_ty), mask=inside)
