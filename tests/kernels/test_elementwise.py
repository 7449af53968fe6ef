import pytest
import torch

from kernels.elementwise import silu_mul, silu_mul_reference
from kernels.errors import UnsupportedFormError
from tests.kernels.closeness import FLOAT_TYPES, assert_close


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("shape", [(1, 64), (3, 1500), (0, 64)])
def test_silu_mul_equals_the_reference(device: torch.device, dtype: torch.dtype, shape: tuple[int, int]) -> None:
    tokens, width = shape
    gate_up = torch.randn(tokens, 2 * width, device=device).to(dtype)
    out = silu_mul(gate_up)
    if tokens:
        assert_close(out, silu_mul_reference(gate_up.double()))


def test_shapes_and_layouts_that_do_not_exist_are_refused(device: torch.device) -> None:
    with pytest.raises(UnsupportedFormError, match=r"shape \[2, 5\]; it has \[tokens, 2 \* width\]"):
        silu_mul(torch.ones(2, 5, device=device))
    with pytest.raises(UnsupportedFormError, match=r"strides of gate_up \(8, 1\); it has contiguous tensors"):
        silu_mul(torch.ones(2, 8, device=device)[:, :4])
