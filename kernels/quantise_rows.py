"""Dynamic quantisation: a scale for every row, or for every group of columns of it, found as the values are read.

The scale of a group is its largest magnitude (at least 1e-30, so that zeros have one) divided by the largest code: 127
for int8, 448 for fp8 e4m3. Codes are the values times the inverse of the scale in float32, rounded half to even.
"""

import torch
import triton
import triton.language as tl

from kernels.ahead_of_time import CAPABILITIES, CompiledForm
from kernels.errors import require_form
from kernels.launch import LaunchConfig, operation

LARGEST_CODE = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}
"""The quantised types, each with its largest code."""
SMALLEST_PEAK = 1e-30
WIDEST_ROW = 32768
GROUPS = (32, 64, 128)


def quantised(rows: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and scales of groups, one in the last dimension of ``rows``: the rule of this file, in torch."""
    largest = LARGEST_CODE[dtype]
    rows = rows.float()
    peaks = rows.abs().amax(dim=-1).clamp(min=SMALLEST_PEAK)
    # Between two tensors torch divides exactly; with a number on either side it may multiply by a rounded inverse.
    every = torch.full_like(peaks, largest)
    codes = (rows * (every / peaks)[..., None]).clamp(-largest, largest)
    return (codes.round() if dtype == torch.int8 else codes).to(dtype), peaks / every


def quantise_per_token_reference(x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes [tokens, width] of ``x`` in int8 or fp8 e4m3, and their float32 scales [tokens]."""
    return quantised(x, dtype)


def quantise_per_group_reference(
    x: torch.Tensor, dtype: torch.dtype, group: int = 128
) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes [tokens, width] of ``x``, and float32 scales [tokens, width / group], one for ``group`` columns."""
    codes, scales = quantised(x.unflatten(1, (-1, group)), dtype)
    return codes.flatten(1), scales


@triton.jit
def round_half_even(x):
    """The nearest whole number, for magnitudes below 2**22: beside 1.5 * 2**23 a float32 has no bits for a fraction."""
    return (x + 12582912.0) - 12582912.0


@triton.jit
def as_codes(rows, peaks, largest: tl.constexpr, dtype: tl.constexpr):
    """Codes of float32 ``rows`` [rows, columns], and the scale of each; ``peaks`` [rows] are the largest magnitudes."""
    peaks = tl.maximum(peaks, 1e-30)
    codes = rows * tl.div_rn(tl.full(peaks.shape, largest, tl.float32), peaks)[:, None]
    codes = tl.minimum(tl.maximum(codes, -largest), largest)
    if dtype == tl.int8:
        codes = round_half_even(codes)
    return codes.to(dtype), tl.div_rn(peaks, tl.full(peaks.shape, largest, tl.float32))


@triton.jit
def _quantise_rows(x, codes, scales, rows, width, largest: tl.constexpr, tile_rows: tl.constexpr, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * tile_rows + tl.arange(0, tile_rows)
    columns = tl.arange(0, block)
    inside = (row < rows)[:, None] & (columns < width)[None, :]
    offsets = row[:, None] * width + columns[None, :]
    values = tl.load(x + offsets, mask=inside, other=0.0).to(tl.float32)
    coded, scale = as_codes(values, tl.max(tl.abs(values), axis=1), largest, codes.dtype.element_ty)
    tl.store(codes + offsets, coded, mask=inside)
    tl.store(scales + row, scale, mask=row < rows)


def launch_config(width: int) -> LaunchConfig:
    """One program holds whole rows in registers: at least 4096 values, at most 32 a thread."""
    block = triton.next_power_of_2(width)
    return LaunchConfig(
        {"tile_rows": max(1, 4096 // block), "block": block}, num_warps=max(4, block // 1024), num_stages=1
    )


def _quantise(
    x: torch.Tensor, dtype: torch.dtype, rows: int, width: int, config: LaunchConfig | None
) -> tuple[torch.Tensor, torch.Tensor]:
    codes = torch.empty(x.shape, dtype=dtype, device=x.device)
    scales = torch.empty(rows, dtype=torch.float32, device=x.device)
    config = config or launch_config(width)
    if rows:
        _quantise_rows[(triton.cdiv(rows, config.tiles["tile_rows"]),)](
            x.contiguous(), codes, scales, rows, width, LARGEST_CODE[dtype], **config.arguments()
        )
    return codes, scales


def _check_per_token(x: torch.Tensor, dtype: torch.dtype) -> None:
    require_form("quantise_per_token", "dtype", dtype, LARGEST_CODE)
    if x.shape[1] > WIDEST_ROW:
        require_form("quantise_per_token", "width", x.shape[1], [f"up to {WIDEST_ROW}"])


def _check_per_group(x: torch.Tensor, dtype: torch.dtype, group: int = 128) -> None:
    require_form("quantise_per_group", "dtype", dtype, LARGEST_CODE)
    require_form("quantise_per_group", "group", group, GROUPS)
    if x.shape[1] % group:
        require_form("quantise_per_group", "width", x.shape[1], [f"multiples of {group}"])


@operation(quantise_per_token_reference, _check_per_token, strided=("x",))
def quantise_per_token(
    x: torch.Tensor, dtype: torch.dtype, *, config: LaunchConfig | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes [tokens, width] of ``x`` in int8 or fp8 e4m3, and their float32 scales [tokens].

    Raises ``UnsupportedFormError`` for another type, or rows of more than 32,768.
    """
    return _quantise(x, dtype, x.shape[0], x.shape[1], config)


@operation(quantise_per_group_reference, _check_per_group, strided=("x",))
def quantise_per_group(
    x: torch.Tensor, dtype: torch.dtype, group: int = 128, *, config: LaunchConfig | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes [tokens, width] of ``x``, and float32 scales [tokens, width / group], one for ``group`` columns.

    Raises ``UnsupportedFormError`` for a type, a group or a width (not a multiple of the group) that has no form.
    """
    tokens, width = x.shape
    codes, scales = _quantise(x, dtype, tokens * (width // group), group, config)
    return codes, scales.view(tokens, width // group)


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation."""
    forms = []
    for name, width in (("group 128", 128), ("rows of 4096", 4096), ("rows of 32768", WIDEST_ROW)):
        for kind in ("fp16", "bf16"):
            for code, largest, capabilities in (("i8", 127.0, CAPABILITIES), ("fp8e4nv", 448.0, (90, 100))):
                types = {"x": f"*{kind}", "codes": f"*{code}", "scales": "*fp32", "rows": "i32", "width": "i32"}
                configs = dict.fromkeys(capabilities, launch_config(width))
                forms.append(
                    CompiledForm(
                        _quantise_rows, f"{kind} to {code} {name}", types, {"largest": largest}, configs, ("width",)
                    )
                )
    return forms
