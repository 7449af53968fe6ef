import pytest
import torch

from kernels.errors import UnsupportedFormError
from kernels.rms_norm import add_rms_norm, add_rms_norm_reference, rms_norm, rms_norm_reference
from tests.kernels.closeness import FLOAT_TYPES, assert_close


@pytest.mark.parametrize("one_plus_weight", [False, True])
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 64), (5, 100), (2, 3000), (3, 5, 96)])
def test_equals_the_reference(
    device: torch.device, dtype: torch.dtype, shape: tuple[int, ...], one_plus_weight: bool
) -> None:
    x = torch.randn(shape, device=device).to(dtype)
    weight = torch.randn(shape[-1], device=device).to(dtype)
    out = rms_norm(x, weight, 1e-5, one_plus_weight)
    assert out.dtype == dtype
    assert_close(out, rms_norm_reference(x.double(), weight, 1e-5, one_plus_weight))


@pytest.mark.parametrize("one_plus_weight", [False, True])
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("shape", [(1, 64), (5, 100), (2, 3000)])
def test_after_addition_equals_the_reference(
    device: torch.device, dtype: torch.dtype, shape: tuple[int, int], one_plus_weight: bool
) -> None:
    x, residual = torch.randn(2, *shape, device=device).to(dtype)
    weight = torch.randn(shape[-1], device=device).to(dtype)
    out, total = add_rms_norm(x, residual, weight, 1e-6, one_plus_weight)
    expected, expected_total = add_rms_norm_reference(x.double(), residual.double(), weight, 1e-6, one_plus_weight)
    assert_close(out, expected)
    assert_close(total, expected_total)


def test_heads_inside_a_joint_projection_need_no_copy(device: torch.device) -> None:
    projected = torch.randn(4, 5 * 64, device=device)
    heads = projected[:, 64:192].unflatten(1, (2, 64))
    weight = torch.randn(64, device=device)
    assert_close(rms_norm(heads, weight, 1e-6), rms_norm_reference(heads.double(), weight, 1e-6))


def test_zeros_stay_zeros_and_no_rows_are_fine(device: torch.device) -> None:
    weight = torch.ones(64, device=device)
    assert not rms_norm(torch.zeros(2, 64, device=device), weight, 1e-6).any()
    assert rms_norm(torch.zeros(0, 64, device=device), weight, 1e-6).shape == (0, 64)


def test_refuses_rows_that_are_too_wide(device: torch.device) -> None:
    with pytest.raises(UnsupportedFormError, match="width 16385"):
        rms_norm(torch.zeros(1, 16385, device=device), torch.ones(16385, device=device), 1e-6)
