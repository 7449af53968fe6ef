import pytest
import torch

from kernels.elementwise import silu_mul, silu_mul_reference
from tests.kernels.closeness import FLOAT_TYPES, assert_close


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("shape", [(1, 64), (3, 1500), (0, 64)])
def test_silu_mul_equals_the_reference(device: torch.device, dtype: torch.dtype, shape: tuple[int, int]) -> None:
    tokens, width = shape
    gate_up = torch.randn(tokens, 2 * width, device=device).to(dtype)
    out = silu_mul(gate_up)
    if tokens:
        assert_close(out, silu_mul_reference(gate_up.double()))
