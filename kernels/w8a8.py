"""The GEMM of activations and a weight that are both of 8 bits, int8 or fp8 (e4m3), with their scales."""

import torch

from kernels.ahead_of_time import CompiledForm
from kernels.errors import UnsupportedFormError, require_form
from kernels.launch import LaunchConfig, capability, operation
from kernels.matmul import Scales, compiled_matmul, matmul
from kernels.matmul_config import Items, matmul_config
from kernels.operands import require_operands, require_shape

SCALE_BLOCK = 128
DTYPES = (torch.int8, torch.float8_e4m3fn)
OUT_DTYPES = (torch.bfloat16, torch.float16)
_FP8_CAPABILITY = 89


def w8a8_reference(
    a: torch.Tensor,
    weight: torch.Tensor,
    a_scales: torch.Tensor,
    weight_scales: torch.Tensor,
    out_dtype: torch.dtype = torch.bfloat16,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    """``(a * a_scales) [m, k] @ (weight * weight_scales) [n, k].T + bias [n]`` as ``out_dtype`` [m, n]."""
    n, k = weight.shape
    if a_scales.ndim == 2:
        a_scales = a_scales.repeat_interleave(SCALE_BLOCK, 1)[:, :k]
        weight_scales = weight_scales.repeat_interleave(SCALE_BLOCK, 0).repeat_interleave(SCALE_BLOCK, 1)[:n, :k]
    else:
        a_scales, weight_scales = a_scales[:, None], weight_scales[:, None]
    product = (a.double() * a_scales.double()) @ (weight.double() * weight_scales.double()).T
    return (product if bias is None else product + bias.double()).to(out_dtype)


def _check(
    a: torch.Tensor,
    weight: torch.Tensor,
    a_scales: torch.Tensor,
    weight_scales: torch.Tensor,
    out_dtype: torch.dtype = torch.bfloat16,
    bias: torch.Tensor | None = None,
) -> None:
    require_form("w8a8", "dtype", a.dtype, DTYPES)
    require_form("w8a8", "out_dtype", out_dtype, OUT_DTYPES)
    require_operands("w8a8", a, weight, bias)
    chip = capability(a.device)
    if a.dtype == torch.float8_e4m3fn and chip < _FP8_CAPABILITY:
        raise UnsupportedFormError("w8a8", f"dtype on sm_{chip}", a.dtype, [torch.int8])
    for name, scales in (("a_scales", a_scales), ("weight_scales", weight_scales)):
        if scales.dtype != torch.float32:
            raise ValueError(f"w8a8 got {name} of {scales.dtype}; expected float32")
    (m, k), n = a.shape, weight.shape[0]
    blocks = -(-k // SCALE_BLOCK)
    if a_scales.ndim == 2:
        require_shape("w8a8", "a_scales", a_scales, (m, blocks))
        require_shape("w8a8", "weight_scales", weight_scales, (-(-n // SCALE_BLOCK), blocks))
    else:
        require_shape("w8a8", "a_scales", a_scales, (1,), (m,), (m, blocks))
        require_shape("w8a8", "weight_scales", weight_scales, (1,), (n,))


@operation(w8a8_reference, _check)
def w8a8(
    a: torch.Tensor,
    weight: torch.Tensor,
    a_scales: torch.Tensor,
    weight_scales: torch.Tensor,
    out_dtype: torch.dtype = torch.bfloat16,
    bias: torch.Tensor | None = None,
    *,
    config: LaunchConfig | None = None,
) -> torch.Tensor:
    """``(a * a_scales) [m, k] @ (weight * weight_scales) [n, k].T + bias [n]`` as ``out_dtype`` [m, n].

    Scales are float32: one for all of ``a`` [1] or one a token [m], with one for all of ``weight`` [1] or one a channel
    [n]; or by blocks of 128, ``a_scales`` [m, k / 128] and ``weight_scales`` [n / 128, k / 128], both rounded up
    (DeepSeek-V3, arXiv 2412.19437, section 3.3.2). int8 is summed in int32, fp8 in float32, blocks by themselves and
    then in float32. On sm_90, sums of fp8 over at most ``FAST_SUM_K`` stay in the tensor cores' narrower sums.

    Raises ``UnsupportedFormError`` for another data type, or fp8 on a chip older than sm_89; ``ValueError`` for
    operands that do not fit each other.
    """
    (m, k), n = a.shape, weight.shape[0]
    scales = _scales_form(m, n, a_scales, weight_scales)
    config = config or matmul_config(m, n, k, _items(a.dtype == torch.int8, scales), capability(a.device))
    return matmul(
        a, weight, out_dtype, config, bias=bias, a_scales=a_scales, weight_scales=weight_scales, scales=scales
    )


def _scales_form(m: int, n: int, a_scales: torch.Tensor, weight_scales: torch.Tensor) -> Scales:
    if a_scales.ndim == 2:
        return Scales(block=True)
    return Scales(per_token=a_scales.shape == (m,), per_channel=weight_scales.shape == (n,))


def _items(whole: bool, scales: Scales) -> Items:
    if scales.block:
        return "int8 by block" if whole else "fp8 by block"
    return "int8" if whole else "fp8"


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation."""
    forms = []
    token_channel, block = Scales(per_token=True, per_channel=True), Scales(block=True)
    for chip, item, large in (
        (80, "i8", "mma.sync"),
        (90, "i8", "wgmma"),
        (90, "fp8e4nv", "wgmma"),
        (100, "i8", "mma.sync"),
        (100, "fp8e4nv", "tcgen05"),
    ):
        for name, scales in (("token x channel", token_channel), ("block", block)):
            items = _items(item == "i8", scales)
            for m, n, k in (
                (1, 4096, 4096),
                (64, 4096, 4096),
                (256, 4096, 4096),
                (8192, 8192, 4096),
                (8192, 8192, 8192),
            ):
                config = matmul_config(m, n, k, items, chip)
                instruction = large if m > 64 else ""
                forms += compiled_matmul(
                    f"{item} {name} {m} x {n} x {k}",
                    item,
                    "bf16",
                    chip,
                    config,
                    scales=scales,
                    one_row=m == 1,
                    instruction=instruction,
                )
        config = matmul_config(8192, 8192, 4096, _items(item == "i8", Scales()), chip)
        forms += compiled_matmul(f"{item} tensor", item, "fp16", chip, config, scales=Scales(), instruction=large)
        config = matmul_config(512, 1000, 1001, _items(item == "i8", block), chip)
        forms += compiled_matmul(
            f"{item} block unaligned", item, "bf16", chip, config, scales=block, bias=True, aligned=False
        )
    return forms
