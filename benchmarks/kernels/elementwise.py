"""Element by element: bound by memory at every size that matters."""

from collections.abc import Callable
from functools import partial

import torch

from benchmarks.kernels.case import Case, Run, Sweep
from kernels.elementwise import silu_mul
from kernels.launch import LaunchConfig

_WIDTH = 14336


def _silu_mul(tokens: int, width: int, device: torch.device, config: LaunchConfig | None = None) -> Run:
    gate_up = torch.randn(tokens, 2 * width, device=device, dtype=torch.bfloat16)
    return partial(silu_mul, gate_up, config=config)


def _case(tokens: int, width: int) -> Case:
    shape = {"tokens": tokens, "width": width}
    moved, operations = 3 * 2 * tokens * width, 4 * tokens * width
    return Case("silu_mul", "gated", "bf16", shape, partial(_silu_mul, tokens, width), moved, operations)


def cases(toy: bool) -> list[Case]:
    """From decode to prefill."""
    return [_case(tokens, 256 if toy else _WIDTH) for tokens in ((1, 8) if toy else (1, 16, 256, 4096, 16384))]


def sweeps() -> list[Sweep]:
    """Width of a program."""
    candidates = [LaunchConfig({"block": block}, warps, 1) for block in (512, 1024, 2048, 4096) for warps in (2, 4, 8)]

    def prepare(device: torch.device) -> Callable[[LaunchConfig], Run]:
        gate_up = torch.randn(4096, 2 * _WIDTH, device=device, dtype=torch.bfloat16)
        return lambda config: partial(silu_mul, gate_up, config=config)

    return [Sweep(_case(4096, _WIDTH), candidates, prepare)]
