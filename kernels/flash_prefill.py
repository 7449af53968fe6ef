"""Prefill attention: whole prompts or chunks of them, of different lengths in one batch."""

import math
from itertools import product
from typing import Any

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.flash_prefill_kernel import flash_prefill_kernel
from kernels.flash_prefill_reference import flash_prefill_reference
from kernels.launch import LaunchConfig, capability, operation
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

_NARROW_WINDOW = 512  # of which much is masked in wide blocks
_SHORT_PROMPT = 512  # of which large tiles leave much unused


def prefill_config(
    kind: str,
    head_dim: int,
    compute_capability: int,
    *,
    paged: bool = False,
    scaled: bool = False,
    window: int = 0,
    capped: bool = False,
    max_query_tokens: int = 8192,
) -> LaunchConfig:
    """The launch for a data type (``"fp16"``, ``"bf16"``, ``"fp32"``) and head dimension on a GPU.

    Over a ``paged`` prefix, whose cache may be ``scaled``, with a window and where scores are ``capped``, gathering,
    masks and caps take registers: tiles are the smaller, lest any spill. For sm_90 these are the fastest that were
    measured, as far as they were (docs/results/kernels.md). ``descriptors`` loads by TMA, described by the host.
    """
    block_d = triton.next_power_of_2(head_dim)
    if kind == "fp32":
        return _config(block_d, 16, 16, 4, 1, descriptors=False)
    if compute_capability < 90:
        return _config_before_hopper(block_d, paged, window, capped)
    if compute_capability >= 100:
        return _config_of_blackwell(block_d, paged, scaled, window)
    if block_d == 256:
        if paged:
            return _config(256, 64, 32, 8 if scaled or window else 4, 2, descriptors=True)
        if window:
            return _config(256, 128, 32, 8, 2, descriptors=False)
        return _config(256, 64, 64, 4, 3, descriptors=True)
    if block_d == 64 and not paged:
        return _config(64, 64, 64 if 0 < window <= _NARROW_WINDOW else 128, 4, 2, descriptors=True)
    if not paged and max_query_tokens <= _SHORT_PROMPT:
        return _config(block_d, 64, 64, 4, 2, descriptors=True)
    if scaled and (window or capped or head_dim < block_d):
        return _config(block_d, 64, 64, 8, 2, descriptors=True)
    if window and capped:
        return _config(block_d, 128, 64, 8, 3, descriptors=True)
    return _config(block_d, 128, 128, 8, 2 if scaled else 3, descriptors=True)


def _config_before_hopper(block_d: int, paged: bool, window: int, capped: bool) -> LaunchConfig:
    if block_d == 64 and not paged:
        return _config(64, 128, 64, 8, 2, descriptors=False)
    if paged and block_d == 256:
        return _config(256, 32, 32, 4, 2, descriptors=False)
    if paged and block_d == 64 and window and capped:
        return _config(64, 64, 16, 8, 2, descriptors=False)
    return _config(block_d, 64, 32, 8, 2, descriptors=False)


def _config_of_blackwell(block_d: int, paged: bool, scaled: bool, window: int) -> LaunchConfig:
    if block_d == 256:
        rows, keys = (64, 32) if paged else (128, 32)
        return _config(256, rows, keys, 8, 2, descriptors=True)
    if paged:
        rows, warps = (64, 4) if block_d == 64 else (64, 8) if scaled and window else (128, 8)
        return _config(block_d, rows, 64, warps, 3, descriptors=True)
    if block_d == 128 and window:
        return _config(128, 128, 64, 8, 3, descriptors=True)
    return _config(block_d, 128, 128, 8, 2, descriptors=True)


def _config(block_d: int, block_m: int, block_n: int, warps: int, stages: int, descriptors: bool) -> LaunchConfig:
    tiles = {"block_d": block_d, "block_m": block_m, "block_n": block_n}
    return LaunchConfig({**tiles, "descriptors": descriptors}, warps, stages)


def _check(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    query_starts: torch.Tensor,
    max_query_tokens: int,
    scale: float,
    *,
    key_cache: torch.Tensor | None = None,
    value_cache: torch.Tensor | None = None,
    block_tables: torch.Tensor | None = None,
    prefix_lengths: torch.Tensor | None = None,
    key_scales: torch.Tensor | None = None,
    value_scales: torch.Tensor | None = None,
    **_: Any,
) -> None:
    check_tokens("flash_prefill", q, k, v, scale)
    if key_cache is not None:
        cache = (key_cache, value_cache, block_tables, prefix_lengths, key_scales, value_scales)
        check_prefix("flash_prefill", q.dtype, *cache)


@operation(flash_prefill_reference, _check, STRIDED)
def flash_prefill(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    query_starts: torch.Tensor,
    max_query_tokens: int,
    scale: float,
    *,
    window: int = 0,
    soft_cap: float = 0.0,
    sinks: torch.Tensor | None = None,
    key_cache: torch.Tensor | None = None,
    value_cache: torch.Tensor | None = None,
    block_tables: torch.Tensor | None = None,
    prefix_lengths: torch.Tensor | None = None,
    key_scales: torch.Tensor | None = None,
    value_scales: torch.Tensor | None = None,
    config: LaunchConfig | None = None,
) -> torch.Tensor:
    """Causal attention of new tokens to those of their sequence up to themselves, and to a prefix if there is one.

    ``q`` is [tokens, heads, head_dim], ``k`` and ``v`` [tokens, kv_heads, head_dim]; sequence i has the tokens from
    ``query_starts[i]`` up to ``query_starts[i + 1]`` (int32), at most ``max_query_tokens``. Returns the form of ``q``;
    tokens after the last sequence stay unwritten. ``scale`` multiplies scores. With a ``window`` a token sees
    itself and the ``window - 1`` before; ``soft_cap`` bounds scores by a hyperbolic tangent; ``sinks`` (float32
    [heads]) adds a logit to each head's denominator.

    A prefix lies in ``key_cache`` and ``value_cache`` [blocks, kv_heads, block_size, head_dim], where ``block_tables``
    (int32 [sequences, blocks]) says, ``prefix_lengths`` (int32) tokens long; int8 and fp8 caches have float32
    ``key_scales`` and ``value_scales`` [blocks, kv_heads, block_size].

    Raises ``UnsupportedFormError`` for what the kernel has no form for.
    """
    heads, head_dim = q.shape[1:]
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    sequences = len(query_starts) - 1
    if not (len(q) and sequences and max_query_tokens):
        return out
    config = config or prefill_config(
        TYPE_NAMES[q.dtype],
        head_dim,
        capability(q.device),
        paged=key_cache is not None,
        scaled=key_scales is not None,
        window=window,
        capped=soft_cap > 0,
        max_query_tokens=max_query_tokens,
    )
    block = [config.tiles["block_n"], 1, config.tiles["block_d"]]
    keys, values = (TensorDescriptor.from_tensor(x, block) if config.tiles["descriptors"] else x for x in (k, v))
    grid = (triton.cdiv(max_query_tokens, config.tiles["block_m"]), heads, sequences)
    flash_prefill_kernel[grid](
        q,
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
        q.stride(0),
        k.stride(0),
        v.stride(0),
        0 if block_tables is None else block_tables.stride(0),
        scale * math.log2(math.e),
        heads=heads,
        kv_heads=k.shape[1],
        head_dim=head_dim,
        block_size=1 if key_cache is None else key_cache.shape[2],
        window=window,
        soft_cap=soft_cap,
        **config.arguments(),
    )
    return out


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation."""
    forms = []
    for capability_ in CAPABILITIES:
        forms += [_form(capability_, kind, 128) for kind in ("fp16", "bf16", "fp32")]
        forms += [_form(capability_, "bf16", head_dim) for head_dim in HEAD_DIMS if head_dim != 128]
        forms.append(_form(capability_, "bf16", 128, max_query_tokens=_SHORT_PROMPT))
        forms.append(_form(capability_, "bf16", 64, window=128, sinks=True))
        forms += [_form(capability_, "bf16", 256, window=window, soft_cap=50.0) for window in (0, 4096)]
        forms += [_form(capability_, "bf16", head_dim, cache="bf16") for head_dim in HEAD_DIMS]
        forms.append(_form(capability_, "bf16", 128, cache="i8"))
        forms.append(_form(capability_, "bf16", 256, cache="i8", window=4096, soft_cap=50.0))
        if capability_ >= 90:
            forms.append(_form(capability_, "bf16", 128, cache="fp8e4nv"))
        caches = (None, "bf16", "i8", "fp8e4nv") if capability_ >= 90 else (None, "bf16", "i8")
        for head_dim, cache, soft_cap in product(HEAD_DIMS, caches, (0.0, 50.0)):
            form = _form(capability_, "bf16", head_dim, window=1024, soft_cap=soft_cap, sinks=True, cache=cache)
            forms.append(form)  # all that takes registers at once
    return forms


def _form(
    compute_capability: int,
    kind: str,
    head_dim: int,
    *,
    window: int = 0,
    soft_cap: float = 0.0,
    sinks: bool = False,
    cache: str | None = None,
    max_query_tokens: int = 8192,
) -> CompiledForm:
    config = prefill_config(
        kind,
        head_dim,
        compute_capability,
        paged=cache is not None,
        scaled=cache in CACHE_TYPE_NAMES.values(),
        window=window,
        capped=soft_cap > 0,
        max_query_tokens=max_query_tokens,
    )
    types, constants = argument_types(kind, config, sinks, cache)
    constants |= {"heads": 32, "kv_heads": 8, "head_dim": head_dim, "block_size": 16}
    constants |= {"window": window, "soft_cap": soft_cap}
    form = f"{kind} {head_dim}"
    form += f" window {window}" if window else ""
    form += f" cap {soft_cap:g}" if soft_cap else ""
    form += " sinks" if sinks else ""
    form += f" over {cache}" if cache else ""
    form += " short" if max_query_tokens <= _SHORT_PROMPT else ""
    configs = {compute_capability: config}
    expected = {} if kind == "fp32" else {90: "wgmma", 100: "tcgen05"}
    return CompiledForm(flash_prefill_kernel, form, types, constants, configs, STRIDES, expected)
