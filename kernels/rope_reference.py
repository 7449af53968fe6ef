"""Rotary embedding and the write of keys and values to the paged cache, written out."""

import torch

from kernels.quantise_rows import quantised


def rotated_reference(
    heads: torch.Tensor, positions: torch.Tensor, cos_sin: torch.Tensor, interleaved: bool = False
) -> torch.Tensor:
    """``heads`` [tokens, heads, head_dim] turned by the angles of their positions, in float64."""
    rotary_dims = cos_sin.shape[1]
    turned, passed = heads.double().split([rotary_dims, heads.shape[2] - rotary_dims], dim=2)
    cos, sin = cos_sin.double()[positions][:, None].chunk(2, dim=2)
    if interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
        pairs = torch.stack([first * cos - second * sin, second * cos + first * sin], dim=-1)
        return torch.cat([pairs.flatten(2), passed], dim=2)
    first, second = turned.chunk(2, dim=2)
    return torch.cat([first * cos - second * sin, second * cos + first * sin, passed], dim=2)


def _write(heads: torch.Tensor, slots: torch.Tensor, cache: torch.Tensor, scales: torch.Tensor | None) -> None:
    kept = slots >= 0
    blocks, offsets = slots[kept] // cache.shape[2], slots[kept] % cache.shape[2]
    if scales is None:
        cache[blocks, :, offsets] = heads[kept].to(cache.dtype)
    else:
        codes, scale = quantised(heads[kept], cache.dtype)
        cache.view(torch.uint8)[blocks, :, offsets] = codes.view(torch.uint8)
        scales[blocks, :, offsets] = scale


def rotate_and_write_reference(
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
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotated queries and keys, in their type; rotated keys and the values go to the caches."""
    rotated_keys = rotated_reference(keys, positions, cos_sin, interleaved)
    _write(rotated_keys, slots, key_cache, key_scales)
    _write(values.double(), slots, value_cache, value_scales)
    return rotated_reference(queries, positions, cos_sin, interleaved).to(queries.dtype), rotated_keys.to(keys.dtype)
