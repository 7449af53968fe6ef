"""Rotary embedding (Su et al., 2021), fused with the write of keys and values to the paged cache.

Two layouts of the rotated pairs: halves (GPT-NeoX: dimension j goes with j + rotary_dims / 2) and interleaved (GPT-J:
2j goes with 2j + 1). Dimensions from ``rotary_dims`` on pass unchanged. ``cos_sin`` [positions, rotary_dims] is float32
and holds the cosines of a position, then its sines. A cache is ``[num_blocks, kv_heads, block_size, head_dim]``; the
slot of a token is ``block * block_size + offset``, -1 where it is not to be written. int8 and fp8 e4m3 caches
have float32 scales ``[num_blocks, kv_heads, block_size]``, by the rule of ``kernels.quantise_rows``.
"""

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.errors import require_form
from kernels.launch import LaunchConfig, operation
from kernels.quantise_rows import LARGEST_CODE, as_codes
from kernels.rope_reference import rotate_and_write_reference


@triton.jit
def _load_rotated(
    heads,
    starts,
    columns,
    inside,
    angles,
    rotary_dims: tl.constexpr,
    interleaved: tl.constexpr,
):
    """Heads that begin at ``starts``, in float32 and turned; ``angles`` points to the cosines of the position."""
    half: tl.constexpr = rotary_dims // 2
    x = tl.load(heads + starts[:, None] + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    turning = columns < rotary_dims
    if interleaved:
        pairs: tl.constexpr = (x.shape[0], x.shape[1] // 2, 2)
        first, second = tl.split(tl.reshape(x, pairs))
        partner = tl.reshape(tl.join(second, first), x.shape)
        angle = columns // 2
        is_first = columns % 2 == 0
    else:
        is_first = columns < half
        run: tl.constexpr = 8 if half % 8 == 0 else 1  # the compiler does not see how far the halves are contiguous
        other = tl.max_contiguous(tl.multiple_of(tl.where(is_first, columns + half, columns - half), run), run)
        partner = tl.load(heads + starts[:, None] + other[None, :], mask=inside & turning[None, :], other=0.0)
        partner = partner.to(tl.float32)
        angle = tl.max_contiguous(tl.multiple_of(tl.where(is_first, columns, columns - half), run), run)
    cos = tl.load(angles + angle, mask=turning, other=1.0)
    sin = tl.load(angles + half + angle, mask=turning, other=0.0)
    return x * cos[None, :] + partner * tl.where(is_first, -sin, sin)[None, :]


@triton.jit
def _rotate_heads(
    heads,
    out,
    token,
    token_stride,
    head,
    count,
    columns,
    angles,
    head_dim: tl.constexpr,
    rotary_dims: tl.constexpr,
    interleaved: tl.constexpr,
):
    """Store some of the ``count`` heads of a token, turned; returns them, their offsets, and which there are."""
    inside = (head < count)[:, None] & (columns < head_dim)[None, :]
    offsets = head[:, None] * head_dim + columns[None, :]
    turned = _load_rotated(
        heads + token * token_stride, head * head_dim, columns, inside, angles, rotary_dims, interleaved
    )
    tl.store(out + token * count * head_dim + offsets, turned.to(out.dtype.element_ty), mask=inside)
    return turned, offsets, inside


@triton.jit
def _store_in_cache(x, cache, scales, rows, columns, inside, heads_inside, head_dim, largest: tl.constexpr):
    """Write float32 heads at ``rows`` of the cache, in codes where it has scales."""
    offsets = rows[:, None] * head_dim + columns[None, :]
    if scales is not None:
        coded, scale = as_codes(x, tl.max(tl.abs(x), axis=1), largest, cache.dtype.element_ty)
        tl.store(cache + offsets, coded, mask=inside)
        tl.store(scales + rows, scale, mask=heads_inside)
    else:
        tl.store(cache + offsets, x.to(cache.dtype.element_ty), mask=inside)


@triton.jit
def _rotate_and_write(
    queries,
    keys,
    values,
    positions,
    cos_sin,
    slots,
    key_cache,
    value_cache,
    key_scales,
    value_scales,
    queries_out,
    keys_out,
    heads,
    kv_heads,
    query_stride,
    key_stride,
    value_stride,
    block_size,
    head_dim: tl.constexpr,
    rotary_dims: tl.constexpr,
    interleaved: tl.constexpr,
    largest: tl.constexpr,
    tile_heads: tl.constexpr,
    block: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    query_tiles = tl.cdiv(heads, tile_heads)
    tile = tl.program_id(1)
    columns = tl.arange(0, block)
    angles = cos_sin + tl.load(positions + token).to(tl.int64) * rotary_dims
    if tile < query_tiles:
        head = tile * tile_heads + tl.arange(0, tile_heads)
        _rotate_heads(
            queries, queries_out, token, query_stride, head, heads, columns, angles, head_dim, rotary_dims, interleaved
        )
    else:
        head = (tile - query_tiles) * tile_heads + tl.arange(0, tile_heads)
        turned, offsets, inside = _rotate_heads(
            keys, keys_out, token, key_stride, head, kv_heads, columns, angles, head_dim, rotary_dims, interleaved
        )
        slot = tl.load(slots + token)
        if slot >= 0:
            rows = (slot // block_size * kv_heads + head) * block_size + slot % block_size
            written = head < kv_heads
            _store_in_cache(turned, key_cache, key_scales, rows, columns, inside, written, head_dim, largest)
            value = tl.load(values + token * value_stride + offsets, mask=inside, other=0.0).to(tl.float32)
            _store_in_cache(value, value_cache, value_scales, rows, columns, inside, written, head_dim, largest)


_FEW_TOKENS = 512


def launch_config(head_dim: int, tokens: int) -> LaunchConfig:
    """A program turns heads of one token, 512 values: by one warp, or by two where there are few programs."""
    block = triton.next_power_of_2(head_dim)
    num_warps = 1 if tokens > _FEW_TOKENS else 2
    return LaunchConfig({"tile_heads": max(1, 512 // block), "block": block}, num_warps=num_warps, num_stages=1)


def _check(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    positions: torch.Tensor,
    cos_sin: torch.Tensor,
    slots: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    key_scales: torch.Tensor | None = None,
    value_scales: torch.Tensor | None = None,
    interleaved: bool = False,
) -> None:
    name = "rotate_and_write"
    head_dim, rotary_dims = queries.shape[2], cos_sin.shape[1]
    if key_scales is None or value_scales is None:
        require_form(name, "cache without scales in", key_cache.dtype, [torch.float16, torch.bfloat16, torch.float32])
    else:
        require_form(name, "cache with scales in", key_cache.dtype, LARGEST_CODE)
    if rotary_dims % 2 or not 0 < rotary_dims <= head_dim:
        require_form(name, "rotary_dims", rotary_dims, [f"even numbers up to {head_dim}"])
    for which, heads in (("queries", queries), ("keys", keys), ("values", values)):
        require_form(name, f"strides within a token of {which}", heads.stride()[1:], [(head_dim, 1)])


@operation(rotate_and_write_reference, _check, strided=("queries", "keys", "values"))
def rotate_and_write(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    positions: torch.Tensor,
    cos_sin: torch.Tensor,
    slots: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    key_scales: torch.Tensor | None = None,
    value_scales: torch.Tensor | None = None,
    interleaved: bool = False,
    *,
    config: LaunchConfig | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotated queries and keys, in their type; rotated keys and the values go to the caches.

    ``queries`` [tokens, heads, head_dim], ``keys`` and ``values`` [tokens, kv_heads, head_dim] may be parts of a joint
    projection: the heads of a token must be contiguous. ``positions`` [tokens] are integers, ``slots`` [tokens] int64.
    Keys are quantised as rotated in float32. Raises ``UnsupportedFormError`` for a cache in int8 or fp8 without scales
    or in another type, and for rotary dimensions that are odd or more than there are.
    """
    tokens, heads, head_dim = queries.shape
    kv_heads, rotary_dims = keys.shape[1], cos_sin.shape[1]
    out = torch.empty(queries.shape, dtype=queries.dtype, device=queries.device)
    keys_out = torch.empty(keys.shape, dtype=keys.dtype, device=keys.device)
    config = config or launch_config(head_dim, tokens)
    tile_heads = config.tiles["tile_heads"]
    if tokens:
        _rotate_and_write[(tokens, triton.cdiv(heads, tile_heads) + triton.cdiv(kv_heads, tile_heads))](
            queries,
            keys,
            values,
            positions,
            cos_sin,
            slots,
            key_cache,
            value_cache,
            key_scales,
            value_scales,
            out,
            keys_out,
            heads,
            kv_heads,
            queries.stride(0),
            keys.stride(0),
            values.stride(0),
            key_cache.shape[2],
            head_dim,
            rotary_dims,
            interleaved,
            LARGEST_CODE.get(key_cache.dtype, 0.0),
            **config.arguments(),
        )
    return out, keys_out


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation."""
    strides = ("query_stride", "key_stride", "value_stride")
    numbers = dict.fromkeys(("heads", "kv_heads", *strides, "block_size"), "i32")
    caches = {"fp16": 0.0, "bf16": 0.0, "i8": 127.0, "fp8e4nv": 448.0}
    shapes = ((128, 128, False), (64, 64, True), (96, 48, False), (256, 64, False))
    forms = []
    for kind in ("fp16", "bf16"):
        for cache, largest in caches.items():
            if cache in ("fp16", "bf16") and cache != kind:
                continue
            for head_dim, rotary_dims, interleaved in shapes:
                activations = ("queries", "keys", "values", "queries_out", "keys_out")
                types = {
                    **dict.fromkeys(activations, f"*{kind}"),
                    **dict.fromkeys(("key_cache", "value_cache"), f"*{cache}"),
                    "positions": "*i32",
                    "cos_sin": "*fp32",
                    "slots": "*i64",
                    **numbers,
                }
                constants: dict[str, object] = {
                    "head_dim": head_dim,
                    "rotary_dims": rotary_dims,
                    "interleaved": interleaved,
                    "largest": largest,
                }
                scales = ("key_scales", "value_scales")
                if largest:
                    types |= dict.fromkeys(scales, "*fp32")
                else:
                    constants |= dict.fromkeys(scales)
                capabilities = (90, 100) if cache == "fp8e4nv" else CAPABILITIES
                name = f"{kind} to {cache} {rotary_dims} of {head_dim}{' interleaved' if interleaved else ''}"
                for tokens, size in ((_FEW_TOKENS, " few"), (_FEW_TOKENS + 1, "")):
                    configs = dict.fromkeys(capabilities, launch_config(head_dim, tokens))
                    forms.append(CompiledForm(_rotate_and_write, name + size, types, constants, configs, strides))
    return forms
