"""The GEMM of activations and a weight in 16-bit floats."""

import torch

from kernels.ahead_of_time import CompiledForm
from kernels.errors import require_form
from kernels.launch import LaunchConfig, capability, operation
from kernels.matmul import compiled_matmul, matmul
from kernels.matmul_config import Items, matmul_config
from kernels.operands import require_operands

DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def gemm_reference(a: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """``a [m, k] @ weight [n, k].T + bias [n]``, in the type of ``a`` [m, n]."""
    product = a.double() @ weight.double().T
    return (product if bias is None else product + bias.double()).to(a.dtype)


def _check(a: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
    require_form("gemm", "dtype", a.dtype, DTYPES)
    require_operands("gemm", a, weight, bias)


@operation(gemm_reference, _check)
def gemm(
    a: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    config: LaunchConfig | None = None,
) -> torch.Tensor:
    """``a [m, k] @ weight [n, k].T + bias [n]``, summed in float32, in the type of ``a`` [m, n].

    Weights are as torch stores them, a row for each output. float32 is multiplied as such, not as TF32, and is there to
    be compared with, not to be fast. Raises ``UnsupportedFormError`` for another data type, ``ValueError`` for
    operands that do not fit each other.
    """
    (m, k), n = a.shape, weight.shape[0]
    items: Items = "float32" if a.dtype == torch.float32 else "16-bit"
    config = config or matmul_config(m, n, k, items, capability(a.device))
    return matmul(a, weight, a.dtype, config, bias=bias)


def compiled_forms() -> list[CompiledForm]:
    """The forms of this file's kernels, for ahead-of-time compilation."""
    forms = []
    for chip, large in ((80, "mma.sync"), (90, "wgmma"), (100, "tcgen05")):
        for m, n, k in ((1, 4096, 4096), (16, 1024, 8192), (64, 4096, 4096), (256, 4096, 4096), (8192, 8192, 8192)):
            config = matmul_config(m, n, k, "16-bit", chip)
            instruction = large if m > 64 else ""
            forms += compiled_matmul(
                f"bf16 {m} x {n} x {k}", "bf16", "bf16", chip, config, one_row=m == 1, instruction=instruction
            )
        config = matmul_config(8192, 8192, 8192, "16-bit", chip)
        forms += compiled_matmul("fp16 bias", "fp16", "fp16", chip, config, bias=True, instruction=large)
        config = matmul_config(512, 1000, 1001, "16-bit", chip)
        forms += compiled_matmul("bf16 unaligned", "bf16", "bf16", chip, config, bias=True, aligned=False)
        forms += compiled_matmul("fp32", "fp32", "fp32", chip, matmul_config(64, 64, 64, "float32", chip), bias=True)
    return forms
