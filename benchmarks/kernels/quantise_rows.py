"""Dynamic quantisation of activations, per token and per group of 128 columns."""

from functools import partial
from itertools import product

import torch

from benchmarks.kernels.row_shapes import NAMES, TOKENS, row_case, row_sweep
from kernels.case import Case, Launch, Sweep
from kernels.quantise_rows import launch_config, quantise_per_group, quantise_per_token

GROUP = 128


def _quantise(device: torch.device, tokens: int, width: int, dtype: torch.dtype, grouped: bool) -> Launch:
    x = torch.randn(tokens, width, device=device).to(torch.bfloat16)
    function = quantise_per_group if grouped else quantise_per_token
    return lambda config: lambda: function(x, dtype, config=config)


def _case(tokens: int, width: int, dtype: torch.dtype, grouped: bool) -> Case:
    scales = tokens * (width // GROUP if grouped else 1)
    return row_case(
        "quantise_per_group" if grouped else "quantise_per_token",
        f"bf16 to {NAMES[dtype]}",
        {"tokens": tokens, "width": width},
        partial(_quantise, tokens=tokens, width=width, dtype=dtype, grouped=grouped),
        tokens * width * 3 + scales * 4,
        tokens * width * 2,
        dtype,
    )


def cases(toy: bool) -> list[Case]:
    """Both types and both kinds of scales, at the widths that projections read."""
    if toy:
        return [_case(3, 256, torch.int8, grouped) for grouped in (False, True)]
    shapes = product(TOKENS, (4096, 14336))
    return [
        _case(tokens, width, dtype, grouped)
        for (tokens, width), dtype, grouped in product(shapes, (torch.int8, torch.float8_e4m3fn), (False, True))
    ]


def sweeps() -> list[Sweep]:
    """Rows a program, and warps."""
    chosen = []
    for grouped, width in ((False, 4096), (False, 14336), (True, 4096)):
        shape = {"tokens": 4096, "width": width, "dtype": torch.float8_e4m3fn, "grouped": grouped}
        row_width = GROUP if grouped else width
        values = (2048, 4096, 8192, 16384)
        shipped = launch_config(row_width)
        chosen.append(row_sweep(_case(**shape), partial(_quantise, **shape), row_width, values, shipped))
    return chosen
