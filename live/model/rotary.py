"""Cosines and sines of rotary embedding (Su et al., 2021), one row a position."""

import math

import torch

from live.model.config import DecoderConfig, Llama3Scaling


def rotary_table(config: DecoderConfig, positions: int, device: torch.device) -> torch.Tensor:
    """Float32 [positions, head_dim]: the cosines of a position's angles, then their sines."""
    frequencies = rotary_frequencies(config)
    angles = torch.arange(positions, dtype=torch.float64)[:, None] * frequencies
    return torch.cat([angles.cos(), angles.sin()], dim=1).float().to(device)


def rotary_frequencies(config: DecoderConfig) -> torch.Tensor:
    """Radians per position of each rotated pair, float64 [head_dim / 2]."""
    head_dim = config.attention.head_dim
    frequencies = config.rope_theta ** -(torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    if isinstance(config.rope_scaling, Llama3Scaling):
        return _stretched(frequencies, config.rope_scaling)
    return frequencies / (config.rope_scaling or 1.0)


def _stretched(frequencies: torch.Tensor, scaling: Llama3Scaling) -> torch.Tensor:
    """Llama 3.1's rule: a wavelength that fits the original context often enough stays, a long one grows by factor.

    In between the two are mixed, by how often it fits.
    """
    turns = scaling.original_context_tokens * frequencies / (2 * math.pi)
    span = scaling.high_frequency_factor - scaling.low_frequency_factor
    kept = ((turns - scaling.low_frequency_factor) / span).clamp(0, 1)
    return frequencies * (kept + (1 - kept) / scaling.factor)
