"""How near a kernel must come to its reference, and outputs that show what was not written."""

import torch

from kernels.launch import interpreted

TOLERANCES = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
FLOAT_TYPES = [torch.float32, torch.float16] if interpreted() else list(TOLERANCES)
"""The types to test: the stock interpreter is wrong for bf16 arithmetic."""


def relative_error(out: torch.Tensor, reference: torch.Tensor) -> float:
    """``|out - reference| / |reference|`` by Frobenius norms in float64; not-a-number where either has one."""
    difference = torch.linalg.vector_norm(out.double() - reference.double())
    return float(difference / torch.linalg.vector_norm(reference.double()))


def assert_close(out: torch.Tensor, reference: torch.Tensor, tolerance: float | None = None) -> None:
    """Same shape, all finite, and near enough for the type of ``out``."""
    assert out.shape == reference.shape
    assert torch.isfinite(out.double()).all(), "an element is not finite: not written, or overflowed"
    limit = TOLERANCES[out.dtype] if tolerance is None else tolerance
    assert relative_error(out, reference) <= limit
