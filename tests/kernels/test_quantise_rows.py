import pytest
import torch

from kernels.errors import UnsupportedFormError
from kernels.launch import interpreted
from kernels.quantise_rows import (
    LARGEST_CODE,
    quantise_per_group,
    quantise_per_group_reference,
    quantise_per_token,
    quantise_per_token_reference,
)
from tests.kernels.closeness import FLOAT_TYPES, assert_close
from tests.kernels.exact_casts import FP8_TYPES, exact_casts  # noqa: F401

pytestmark = pytest.mark.usefixtures("exact_casts")
CODE_TYPES = [torch.int8, *FP8_TYPES]


def assert_same_codes(codes: torch.Tensor, scales: torch.Tensor, reference: tuple[torch.Tensor, torch.Tensor]) -> None:
    """Equal scales, and equal codes in the interpreter; on a GPU a fused multiply-add may decide a tie otherwise."""
    assert torch.equal(scales, reference[1])
    if interpreted():
        assert torch.equal(codes.view(torch.uint8), reference[0].view(torch.uint8))
    per_group = scales.view(len(scales), -1, 1)
    out, expected = (each.float().unflatten(1, (per_group.shape[1], -1)) * per_group for each in (codes, reference[0]))
    assert_close(out, expected, tolerance=1e-3)


@pytest.mark.parametrize("code", CODE_TYPES)
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("shape", [(1, 64), (5, 100), (3, 1500), (2, 33), (1, 1)])
def test_per_token_equals_the_reference(
    device: torch.device, dtype: torch.dtype, code: torch.dtype, shape: tuple[int, int]
) -> None:
    x = torch.randn(shape, device=device).to(dtype)
    codes, scales = quantise_per_token(x, code)
    assert codes.shape == shape
    assert_same_codes(codes, scales, quantise_per_token_reference(x, code))


@pytest.mark.parametrize("code", CODE_TYPES)
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize(("tokens", "width", "group"), [(1, 128, 128), (7, 384, 128), (3, 128, 32)])
def test_per_group_equals_the_reference(
    device: torch.device, dtype: torch.dtype, code: torch.dtype, tokens: int, width: int, group: int
) -> None:
    x = torch.randn(tokens, width, device=device).to(dtype)
    codes, scales = quantise_per_group(x, code, group)
    assert scales.shape == (tokens, width // group)
    assert_same_codes(codes, scales, quantise_per_group_reference(x, code, group))


@pytest.mark.parametrize("code", CODE_TYPES)
def test_dequantised_values_are_within_half_a_step(device: torch.device, code: torch.dtype) -> None:
    x = torch.randn(9, 257, device=device) * torch.logspace(-20, 20, 9, device=device)[:, None]
    codes, scales = quantise_per_token(x, code)
    error = (codes.double() * scales.double()[:, None] - x.double()).abs()
    step = torch.tensor(1.0) if code == torch.int8 else torch.clamp(x.abs() / scales[:, None] * 2**-3, min=2**-9)
    assert (error <= scales[:, None] * step.to(device) * 0.5001).all()
    assert codes.float().abs().amax(dim=1).eq(LARGEST_CODE[code]).all()


@pytest.mark.parametrize("code", CODE_TYPES)
def test_rows_of_zeros_and_of_the_smallest_numbers_stay_finite(device: torch.device, code: torch.dtype) -> None:
    x = torch.tensor([[0.0, 0.0], [1e-38, -1e-40]], device=device)
    codes, scales = quantise_per_token(x, code)
    assert (codes.float() * scales[:, None]).abs().max() <= 1e-37
    assert (scales > 0).all()


def test_no_rows_and_unknown_forms(device: torch.device) -> None:
    codes, scales = quantise_per_token(torch.empty(0, 64, device=device), torch.int8)
    assert codes.shape == (0, 64)
    assert scales.shape == (0,)
    with pytest.raises(UnsupportedFormError, match="it has multiples of 128"):
        quantise_per_group(torch.empty(1, 100, device=device), torch.int8)
    with pytest.raises(UnsupportedFormError, match=r"dtype torch\.int16"):
        quantise_per_token(torch.empty(1, 100, device=device), torch.int16)
