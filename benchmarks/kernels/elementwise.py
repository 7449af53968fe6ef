"""silu_mul: the gate of a gated MLP."""

from itertools import product

import torch

from benchmarks.kernels.case import Case, Sweep
from benchmarks.kernels.row_shapes import TOKENS, Launch, row_case
from kernels import elementwise
from kernels.elementwise import silu_mul
from kernels.launch import LaunchConfig


def _silu_mul(device: torch.device, tokens: int, width: int) -> Launch:
    gate_up = torch.randn(tokens, 2 * width, device=device).to(torch.bfloat16)
    return lambda config: lambda: silu_mul(gate_up, config=config)


def _case(tokens: int, width: int) -> Case:
    return row_case(
        "silu_mul",
        "gate and up",
        {"tokens": tokens, "width": width},
        lambda device: _silu_mul(device, tokens, width),
        tokens * width * 3 * 2,
        tokens * width * 4,
    )


def cases(toy: bool) -> list[Case]:
    """Decode and prefill steps at the widths of small and large models."""
    if toy:
        return [_case(3, 100)]
    return [_case(tokens, width) for tokens, width in product(TOKENS, (3584, 14336))]


def sweeps() -> list[Sweep]:
    """Columns a program."""
    candidates = [
        LaunchConfig({"block": block}, warps, 1) for block, warps in product((512, 1024, 2048, 4096), (2, 4, 8))
    ]
    return [
        Sweep(
            _case(tokens, 14336),
            candidates,
            lambda device, tokens=tokens: _silu_mul(device, tokens, 14336),
            shipped=elementwise.CONFIG,
        )
        for tokens in (64, 4096)
    ]
