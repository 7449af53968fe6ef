"""RMSNorm, alone, after the addition of a residual, and of heads."""

from functools import partial

import torch

from benchmarks.kernels.row_shapes import TOKENS, row_case, row_sweep
from kernels.case import Case, Launch, Sweep
from kernels.rms_norm import add_rms_norm, launch_config, rms_norm


def _norm(device: torch.device, tokens: int, width: int, added: bool) -> Launch:
    x, residual = torch.randn(2, tokens, width, device=device).to(torch.bfloat16)
    weight = torch.ones(width, device=device, dtype=torch.bfloat16)
    if added:
        return lambda config: lambda: add_rms_norm(x, residual, weight, 1e-6, config=config)
    return lambda config: lambda: rms_norm(x, weight, 1e-6, config=config)


def _case(tokens: int, width: int, added: bool) -> Case:
    return row_case(
        "add_rms_norm" if added else "rms_norm",
        "rows",
        {"tokens": tokens, "width": width},
        partial(_norm, tokens=tokens, width=width, added=added),
        (tokens * width * (4 if added else 2) + width) * 2,
        tokens * width * (5 if added else 4),
    )


def cases(toy: bool) -> list[Case]:
    """Hidden states of small and large models, and the heads of a step."""
    if toy:
        return [_case(3, 100, added) for added in (False, True)]
    return [
        *(_case(tokens, width, added) for tokens in TOKENS for width in (4096, 8192) for added in (False, True)),
        *(_case(tokens * 32, 128, False) for tokens in TOKENS),
    ]


def sweeps() -> list[Sweep]:
    """Rows a program, and warps."""
    chosen = []
    for width, rows, added in ((4096, 4096, True), (8192, 4096, True), (128, 131072, False), (4096, 64, True)):
        shape = {"tokens": rows, "width": width, "added": added}
        chosen.append(
            row_sweep(_case(**shape), partial(_norm, **shape), width, (1024, 2048, 4096, 8192), launch_config(width))
        )
    return chosen
