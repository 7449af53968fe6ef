"""Attention of a batch of decodes and prefill chunks in one launch.

Decodes are bound by memory and chunks by arithmetic; in one launch they share the GPU (Kamath et al., POD-Attention,
arXiv:2410.18038, who go further and pair them on each multiprocessor). The first programs are decodes, one a sequence
and key head, its group of query heads as rows; then come the tiles of ``flash_prefill``. A decode's context is not
split, which suits batches with at least as many pairs of sequence and key head as the GPU has multiprocessors.

Whether this is faster than ``flash_prefill`` and ``paged_decode`` in turn has not been measured, so nothing takes it by
itself; ``benchmarks/kernels/mixed_attention.py`` times both, and ``make bench-kernels`` prints their ratio.
"""

import math
from itertools import product
from typing import Any

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.errors import UnsupportedFormError
from kernels.flash_prefill import prefill_config
from kernels.flash_prefill_reference import flash_prefill_reference
from kernels.launch import LaunchConfig, capability, operation
from kernels.mixed_attention_kernel import mixed_attention_kernel
from kernels.prefill_inputs import (
    CACHE_TYPE_NAMES,
    HEAD_DIMS,
    STRIDED,
    STRIDES,
    TYPE_NAMES,
    argument_types,
    check_prefix,
    check_tokens,
)


def mixed_config(
    kind: str, head_dim: int, compute_capability: int, *, scaled: bool = False, window: int = 0, capped: bool = False
) -> LaunchConfig:
    """The launch for a data type and head dimension on a GPU: that of prefill over a prefix.

    On sm_90, where this kernel was not measured, that of sm_100, whose smaller tiles leave registers to decodes.
    """
    chip = compute_capability if compute_capability < 90 else 100
    config = prefill_config(kind, head_dim, chip, paged=True, scaled=scaled, window=window, capped=capped)
    tiles = {name: config.tiles[name] for name in ("block_d", "block_m", "block_n", "descriptors")}
    return LaunchConfig({**tiles, "decode_n": tiles["block_n"]}, config.num_warps, config.num_stages)


def mixed_attention_reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    query_starts: torch.Tensor,
    max_query_tokens: int,
    decodes: int,
    scale: float,
    *,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_tables: torch.Tensor,
    prefix_lengths: torch.Tensor,
    key_scales: torch.Tensor | None = None,
    value_scales: torch.Tensor | None = None,
    window: int = 0,
    soft_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """The same as ``mixed_attention``, computed in float64; a decode is a chunk of one token."""
    return flash_prefill_reference(
        q, k, v, query_starts, max_query_tokens, scale, window=window, soft_cap=soft_cap, sinks=sinks,
        key_cache=key_cache, value_cache=value_cache, block_tables=block_tables, prefix_lengths=prefix_lengths,
        key_scales=key_scales, value_scales=value_scales,
    )  # fmt: skip


def _check(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    query_starts: torch.Tensor,
    max_query_tokens: int,
    decodes: int,
    scale: float,
    *,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_tables: torch.Tensor,
    prefix_lengths: torch.Tensor,
    key_scales: torch.Tensor | None = None,
    value_scales: torch.Tensor | None = None,
    **_: Any,
) -> None:
    check_tokens("mixed_attention", q, k, v, scale)
    cache = (key_cache, value_cache, block_tables, prefix_lengths, key_scales, value_scales)
    check_prefix("mixed_attention", q.dtype, *cache)
    sequences = len(query_starts) - 1
    if not 0 <= decodes <= sequences:
        raise UnsupportedFormError("mixed_attention", "decodes", decodes, [f"0 to {sequences} for as many sequences"])


@operation(mixed_attention_reference, _check, STRIDED)
def mixed_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    query_starts: torch.Tensor,
    max_query_tokens: int,
    decodes: int,
    scale: float,
    *,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_tables: torch.Tensor,
    prefix_lengths: torch.Tensor,
    key_scales: torch.Tensor | None = None,
    value_scales: torch.Tensor | None = None,
    window: int = 0,
    soft_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
    config: LaunchConfig | None = None,
) -> torch.Tensor:
    """``flash_prefill`` over a prefix for a batch whose first ``decodes`` sequences have one new token each.

    Arguments are those of ``flash_prefill``; the keys and values of all new tokens, also of decodes, are in ``k`` and
    ``v``, and ``prefix_lengths`` counts the tokens before them.

    Raises ``UnsupportedFormError`` for what the kernel has no form for.
    """
    sequences = len(query_starts) - 1
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    heads, head_dim = q.shape[1:]
    kv_heads = k.shape[1]
    config = config or mixed_config(
        TYPE_NAMES[q.dtype],
        head_dim,
        capability(q.device),
        scaled=key_scales is not None,
        window=window,
        capped=soft_cap > 0,
    )
    tiles = triton.cdiv(max_query_tokens, config.tiles["block_m"])
    programs = decodes * kv_heads + (sequences - decodes) * heads * tiles
    if not (len(q) and programs):
        return out
    block = [config.tiles["block_n"], 1, config.tiles["block_d"]]
    descriptors = [TensorDescriptor.from_tensor(x, block) if config.tiles["descriptors"] else None for x in (k, v)]
    mixed_attention_kernel[(programs,)](
        q,
        k,
        v,
        *descriptors,
        out,
        query_starts,
        sinks,
        key_cache,
        value_cache,
        key_scales,
        value_scales,
        block_tables,
        prefix_lengths,
        q.stride(0),
        k.stride(0),
        v.stride(0),
        block_tables.stride(0),
        scale * math.log2(math.e),
        decodes,
        max(tiles, 1),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        block_size=key_cache.shape[2],
        window=window,
        soft_cap=soft_cap,
        block_g=max(16, triton.next_power_of_2(heads // kv_heads)),
        **config.arguments(),
    )
    return out


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation."""
    forms = []
    for chip in CAPABILITIES:
        caches = ("bf16", "i8", "fp8e4nv") if chip >= 90 else ("bf16", "i8")
        forms += [_form(chip, 128, cache) for cache in caches] + [_form(chip, 64, "bf16"), _form(chip, 256, "bf16")]
        every = product(HEAD_DIMS, caches)
        forms += [_form(chip, head_dim, cache, window=1024, soft_cap=50.0, sinks=True) for head_dim, cache in every]
    return forms


def _form(
    chip: int, head_dim: int, cache: str, *, window: int = 0, soft_cap: float = 0.0, sinks: bool = False
) -> CompiledForm:
    scaled = cache in CACHE_TYPE_NAMES.values()
    config = mixed_config("bf16", head_dim, chip, scaled=scaled, window=window, capped=soft_cap > 0)
    types, constants = argument_types("bf16", config, sinks, cache)
    for name in ("key", "value"):
        loaded = types[f"{name}s"]
        types[f"{name}s"] = "*bf16"
        if loaded == "*bf16":
            constants[f"{name}_descriptor"] = None
        else:
            types[f"{name}_descriptor"] = loaded
    types |= {"decodes": "i32", "tiles": "i32"}
    constants |= {"heads": 32, "kv_heads": 8, "head_dim": head_dim, "block_size": 16, "block_g": 16}
    constants |= {"window": window, "soft_cap": soft_cap}
    form = f"bf16 {head_dim} over {cache}" + (f" window {window} cap {soft_cap:g} sinks" if window else "")
    expected = {90: "wgmma", 100: "tcgen05"}
    return CompiledForm(mixed_attention_kernel, form, types, constants, {chip: config}, STRIDES, expected)
