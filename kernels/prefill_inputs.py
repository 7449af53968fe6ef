"""What the prefill and the mixed attention kernel take: checks, and types for ahead-of-time compilation."""

from typing import Any

import torch

from kernels.errors import UnsupportedFormError, require_form, require_rows
from kernels.launch import LaunchConfig

HEAD_DIMS = (64, 96, 128, 256)
BLOCK_SIZES = (16, 32, 64, 128)
TYPE_NAMES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32"}
CACHE_TYPE_NAMES = {torch.int8: "i8", torch.float8_e4m3fn: "fp8e4nv"}
STRIDED = ("q", "k", "v", "block_tables")
"""Arguments that need not be contiguous, by the names that both operations give them."""
STRIDES = ("query_stride", "key_stride", "value_stride", "table_stride")
_OPTIONAL = ("sinks", "key_cache", "value_cache", "key_scales", "value_scales", "block_tables", "prefix_lengths")


def check_tokens(operation: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> None:
    """Raise ``UnsupportedFormError`` where new tokens have a form that no kernel takes."""
    heads, head_dim = q.shape[1:]
    require_form(operation, "data type", q.dtype, TYPE_NAMES)
    require_form(operation, "head_dim", head_dim, HEAD_DIMS)
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        require_form(operation, f"data type of {name}", tensor.dtype, [q.dtype])
        require_form(operation, f"strides within a token of {name}", tensor.stride()[1:], [(head_dim, 1)])
    if heads % k.shape[1]:
        raise UnsupportedFormError(operation, "heads", heads, [f"multiples of its {k.shape[1]} kv_heads"])
    if not scale > 0:
        raise UnsupportedFormError(operation, "scale", scale, ["scales above 0"])


def check_prefix(
    operation: str,
    dtype: torch.dtype,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor | None,
    block_tables: torch.Tensor | None,
    prefix_lengths: torch.Tensor | None,
    key_scales: torch.Tensor | None,
    value_scales: torch.Tensor | None,
) -> None:
    """Raise ``UnsupportedFormError`` where a paged prefix has a form that no kernel takes, or lacks a part."""
    require_form(operation, "block_size", key_cache.shape[2], BLOCK_SIZES)
    parts = {"value_cache": value_cache, "block_tables": block_tables, "prefix_lengths": prefix_lengths}
    for name, part in parts.items():
        if part is None:
            raise UnsupportedFormError(operation, name, None, ["a tensor, where there is a key_cache"])
    assert block_tables is not None
    require_rows(operation, "block_tables", block_tables)
    for name, cache, scales in (("key_cache", key_cache, key_scales), ("value_cache", value_cache, value_scales)):
        assert cache is not None
        require_form(operation, f"data type of {name}", cache.dtype, [dtype] if scales is None else CACHE_TYPE_NAMES)


def argument_types(kind: str, config: LaunchConfig, sinks: bool, cache: str | None) -> tuple[dict[str, str], Any]:
    """Triton types of the arguments for tokens of a type over a cache of a type, and the constants: what is absent."""
    tiles = config.tiles
    block = f"tensordesc<{kind}[{tiles['block_n']}, 1, {tiles['block_d']}]>"
    types = dict.fromkeys(("queries", "out"), f"*{kind}")
    types |= dict.fromkeys(("keys", "values"), block if tiles["descriptors"] else f"*{kind}")
    types |= {"query_starts": "*i32", "scale_log2": "fp32"} | dict.fromkeys(STRIDES, "i32")
    if sinks:
        types["sinks"] = "*fp32"
    if cache is not None:
        types |= dict.fromkeys(("key_cache", "value_cache"), f"*{cache}")
        types |= dict.fromkeys(("block_tables", "prefix_lengths"), "*i32")
        if cache in CACHE_TYPE_NAMES.values():
            types |= dict.fromkeys(("key_scales", "value_scales"), "*fp32")
    return types, {name: None for name in _OPTIONAL if name not in types}
