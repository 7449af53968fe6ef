"""RMSNorm (Zhang and Sennrich, 2019), alone or after the addition of a residual stream."""

from typing import Any

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.errors import require_form, require_rows
from kernels.launch import LaunchConfig, operation

WIDEST_ROW = 16384


def rms_norm_reference(
    x: torch.Tensor, weight: torch.Tensor, epsilon: float, one_plus_weight: bool = False
) -> torch.Tensor:
    """``x / sqrt(mean(x**2) + epsilon) * weight`` over the last dimension; ``1 + weight`` for Gemma's convention."""
    values = x.double()
    scale = weight.double() + (1.0 if one_plus_weight else 0.0)
    return (values / (values.square().mean(dim=-1, keepdim=True) + epsilon).sqrt() * scale).to(x.dtype)


def add_rms_norm_reference(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float, one_plus_weight: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """The norm of ``x + residual``, and that sum: the new residual. The norm is of the sum as it is stored."""
    total = (x.double() + residual.double()).to(x.dtype)
    return rms_norm_reference(total, weight, epsilon, one_plus_weight), total


@triton.jit
def _rms_norm(
    x,
    residual,
    weight,
    out,
    total,
    rows,
    width,
    epsilon,
    rows_per_token,
    token_stride,
    row_stride,
    one_plus_weight: tl.constexpr,
    tile_rows: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    columns = tl.arange(0, block)
    inside = (row < rows)[:, None] & (columns < width)[None, :]
    starts = row // rows_per_token * token_stride + row % rows_per_token * row_stride
    offsets = row[:, None] * width + columns[None, :]
    values = tl.load(x + starts[:, None] + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    if residual is not None:
        stored = (values + tl.load(residual + offsets, mask=inside, other=0.0).to(tl.float32)).to(x.dtype.element_ty)
        tl.store(total + offsets, stored, mask=inside)
        values = stored.to(tl.float32)
    scale = tl.load(weight + columns, mask=columns < width, other=0.0).to(tl.float32)
    if one_plus_weight:
        scale += 1.0
    inverse = tl.rsqrt(tl.sum(values * values, axis=1) / width + epsilon)
    tl.store(out + offsets, (values * inverse[:, None] * scale[None, :]).to(out.dtype.element_ty), mask=inside)


def launch_config(width: int) -> LaunchConfig:
    """One program holds whole rows in registers: at least 2048 values, 16 a thread."""
    block = triton.next_power_of_2(width)
    return LaunchConfig(
        {"tile_rows": max(1, 2048 // block), "block": block}, num_warps=max(4, block // 512), num_stages=1
    )


def _launch(
    x: torch.Tensor,
    residual: torch.Tensor | None,
    weight: torch.Tensor,
    epsilon: float,
    one_plus_weight: bool,
    config: LaunchConfig | None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    width = x.shape[-1]
    rows_of_token = x[:, None] if x.ndim == 2 else x
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    total = None if residual is None else torch.empty(x.shape, dtype=x.dtype, device=x.device)
    config = config or launch_config(width)
    rows = x.numel() // width
    if rows:
        _rms_norm[(triton.cdiv(rows, config.tiles["tile_rows"]),)](
            rows_of_token,
            None if residual is None else residual.contiguous(),
            weight,
            out,
            total,
            rows,
            width,
            epsilon,
            rows_of_token.shape[1],
            rows_of_token.stride(0),
            rows_of_token.stride(1),
            one_plus_weight,
            **config.arguments(),
        )
    return out, total


def _check(x: torch.Tensor, *_: Any, **__: Any) -> None:
    if x.shape[-1] > WIDEST_ROW:
        require_form("rms_norm", "width", x.shape[-1], [f"up to {WIDEST_ROW}"])
    require_form("rms_norm", "dimensions", x.ndim, [2, 3])
    require_rows("rms_norm", "x", x)


@operation(rms_norm_reference, _check, strided=("x",))
def rms_norm(
    x: torch.Tensor,
    weight: torch.Tensor,
    epsilon: float,
    one_plus_weight: bool = False,
    *,
    config: LaunchConfig | None = None,
) -> torch.Tensor:
    """``x / sqrt(mean(x**2) + epsilon) * weight`` over the last dimension; ``1 + weight`` for Gemma's convention.

    ``x`` is [tokens, width], or [tokens, heads, head_dim] to norm every head (its last dimension contiguous, so that
    a part of a joint projection needs no copy). Raises ``UnsupportedFormError`` for more dimensions or rows of more
    than 16,384.
    """
    return _launch(x, None, weight, epsilon, one_plus_weight, config)[0]


@operation(add_rms_norm_reference, _check, strided=("x", "residual"))
def add_rms_norm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    epsilon: float,
    one_plus_weight: bool = False,
    *,
    config: LaunchConfig | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The norm of ``x + residual``, and that sum: the new residual. The norm is of the sum as it is stored.

    Takes and refuses what ``rms_norm`` does.
    """
    out, total = _launch(x, residual, weight, epsilon, one_plus_weight, config)
    assert total is not None
    return out, total


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation."""
    integers = ("rows", "width", "rows_per_token", "token_stride", "row_stride")
    forms = []
    for kind in ("fp16", "bf16"):
        pointers = {"x": f"*{kind}", "weight": f"*{kind}", "out": f"*{kind}"}
        residual = {"residual": f"*{kind}", "total": f"*{kind}"}
        numbers = {**dict.fromkeys(integers, "i32"), "epsilon": "fp32"}
        for name, width in (("heads of 128", 128), ("rows of 4096", 4096), ("rows of 16384", WIDEST_ROW)):
            configs = dict.fromkeys(CAPABILITIES, launch_config(width))
            divisible = ("width", "token_stride", "row_stride")
            for form, types, absent in (
                (f"{kind} {name}", pointers, {"residual": None, "total": None}),
                (f"{kind} {name} after addition", pointers | residual, {}),
            ):
                constants = {**absent, "one_plus_weight": False}
                forms.append(CompiledForm(_rms_norm, form, types | numbers, constants, configs, divisible))
    return forms
