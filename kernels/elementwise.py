"""Element by element: the gate of a gated MLP."""

from functools import partial
from itertools import product

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.case import Case, Launch, Sweep
from kernels.errors import UnsupportedFormError, require_form
from kernels.launch import LaunchConfig, operation

DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def silu_mul_reference(gate_up: torch.Tensor) -> torch.Tensor:
    """``silu(gate) * up`` of ``gate_up`` [tokens, 2 * width], gates first; [tokens, width] in its type."""
    gate, up = gate_up.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate.double()).mul(up.double()).to(gate_up.dtype)


@triton.jit
def _silu_mul(gate_up, out, width, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * block + tl.arange(0, block)
    inside = columns < width
    gate = tl.load(gate_up + row * 2 * width + columns, mask=inside).to(tl.float32)
    up = tl.load(gate_up + row * 2 * width + width + columns, mask=inside).to(tl.float32)
    tl.store(out + row * width + columns, (gate * tl.sigmoid(gate) * up).to(out.dtype.element_ty), mask=inside)


CONFIG = LaunchConfig({"block": 1024}, num_warps=4, num_stages=1)


def _check(gate_up: torch.Tensor) -> None:
    require_form("silu_mul", "dtype", gate_up.dtype, DTYPES)
    if gate_up.ndim != 2 or gate_up.shape[1] % 2:
        raise UnsupportedFormError("silu_mul", "shape", list(gate_up.shape), ["[tokens, 2 * width]"])


@operation(silu_mul_reference, _check)
def silu_mul(gate_up: torch.Tensor, *, config: LaunchConfig | None = None) -> torch.Tensor:
    """``silu(gate) * up`` of ``gate_up`` [tokens, 2 * width], gates first; [tokens, width] in its type.

    Raises ``UnsupportedFormError`` for another shape, or a type that is no float of 16 or 32 bits.
    """
    tokens, width = gate_up.shape[0], gate_up.shape[1] // 2
    out = torch.empty((tokens, width), dtype=gate_up.dtype, device=gate_up.device)
    config = config or CONFIG
    if tokens:
        _silu_mul[(tokens, triton.cdiv(width, config.tiles["block"]))](gate_up, out, width, **config.arguments())
    return out


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation."""
    configs = dict.fromkeys(CAPABILITIES, CONFIG)

    def types(kind: str) -> dict[str, str]:
        return {"gate_up": f"*{kind}", "out": f"*{kind}", "width": "i32"}

    return [CompiledForm(_silu_mul, kind, types(kind), {}, configs, ("width",)) for kind in ("fp16", "bf16")]


def _launch(device: torch.device, tokens: int, width: int) -> Launch:
    gate_up = torch.randn(tokens, 2 * width, device=device).to(torch.bfloat16)
    return lambda config: lambda: silu_mul(gate_up, config=config)


def _case(tokens: int, width: int) -> Case:
    return Case(
        kernel="silu_mul",
        form="gate and up",
        dtype="bf16",
        shape={"tokens": tokens, "width": width},
        prepare=lambda device: _launch(device, tokens, width)(None),
        bytes_moved=tokens * width * 3 * 2,
        operations=tokens * width * 4,
    )


def cases(toy: bool) -> list[Case]:
    """Decode and prefill steps at the widths of small and large models."""
    if toy:
        return [_case(3, 100)]
    return [_case(tokens, width) for tokens, width in product((1, 64, 512, 4096, 16384), (3584, 14336))]


def sweeps() -> list[Sweep]:
    """Columns a program."""
    candidates = [
        LaunchConfig({"block": block}, warps, 1) for block, warps in product((512, 1024, 2048, 4096), (2, 4, 8))
    ]
    return [
        Sweep(_case(tokens, 14336), candidates, partial(_launch, tokens=tokens, width=14336), shipped=CONFIG)
        for tokens in (64, 4096)
    ]
