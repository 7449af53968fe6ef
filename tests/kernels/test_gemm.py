import pytest
import torch

from kernels.errors import UnsupportedFormError
from kernels.gemm import gemm, gemm_reference
from kernels.launch import LaunchConfig
from kernels.matmul_config import pointer_config, tma_config
from tests.kernels.closeness import FLOAT_TYPES, assert_close

SPLIT = pointer_config(16, 32, 32, 4, num_warps=4, num_stages=3)
TMA = tma_config(64, 64, 64, store_n=32, num_warps=4, num_stages=3, group_m=2)


def operands(
    device: torch.device, dtype: torch.dtype, m: int, n: int, k: int, bias: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    a = torch.randn(m, k, device=device).to(dtype)
    weight = torch.randn(n, k, device=device).to(dtype)
    return a, weight, torch.randn(n, device=device).mul(4).to(dtype) if bias else None


def check(
    device: torch.device,
    dtype: torch.dtype,
    shape: tuple[int, int, int],
    bias: bool,
    config: LaunchConfig | None = None,
) -> None:
    a, weight, offset = operands(device, dtype, *shape, bias)
    out = gemm(a, weight, offset, config=config)
    assert out.dtype == dtype
    double = None if offset is None else offset.double()
    assert_close(out, gemm_reference(a.double(), weight.double(), double))


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("shape", [(1, 48, 80), (5, 33, 64), (17, 130, 200), (64, 7, 33), (70, 128, 48), (150, 40, 96)])
def test_shipped_configurations_equal_the_reference(
    device: torch.device, dtype: torch.dtype, shape: tuple[int, int, int]
) -> None:
    check(device, dtype, shape, bias=shape[0] % 2 == 1)


@pytest.mark.parametrize("dtype", [dtype for dtype in FLOAT_TYPES if dtype != torch.float32])
@pytest.mark.parametrize("shape", [(1153, 1296, 48), (64, 64, 64), (1, 16, 16), (130, 208, 80)])
def test_tensor_descriptors_equal_the_reference(
    device: torch.device, dtype: torch.dtype, shape: tuple[int, int, int]
) -> None:
    check(device, dtype, shape, bias=True, config=None if shape[0] > 1000 else TMA)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("shape", [(1, 48, 400), (20, 35, 130), (16, 32, 32), (3, 40, 97)])
def test_split_sums_equal_the_reference(device: torch.device, dtype: torch.dtype, shape: tuple[int, int, int]) -> None:
    check(device, dtype, shape, bias=True, config=SPLIT)


def test_long_sums_equal_the_reference(device: torch.device) -> None:
    check(device, torch.float16, (2, 16, 16384), bias=False)


@pytest.mark.parametrize(("m", "n"), [(0, 64), (3, 0)])
def test_nothing_in_is_nothing_out(device: torch.device, m: int, n: int) -> None:
    a, weight, _ = operands(device, torch.float16, m, n, 32, bias=False)
    assert gemm(a, weight).shape == (m, n)


def test_a_sum_of_nothing_is_the_bias(device: torch.device) -> None:
    a, weight, bias = operands(device, torch.float16, 3, 16, 0, bias=True)
    assert torch.equal(gemm(a, weight, bias), bias.expand(3, 16))


def test_equal_inputs_give_equal_bits(device: torch.device) -> None:
    a, weight, _ = operands(device, torch.float16, 4, 64, 512, bias=False)
    assert torch.equal(gemm(a, weight, config=SPLIT), gemm(a, weight, config=SPLIT))


def test_what_does_not_fit_is_refused(device: torch.device) -> None:
    a, weight, _ = operands(device, torch.float16, 4, 8, 16, bias=False)
    with pytest.raises(
        UnsupportedFormError, match=r"gemm has no form with dtype torch\.float64; it has torch\.bfloat16"
    ):
        gemm(a.double(), weight.double())
    with pytest.raises(ValueError, match=r"weight of shape \[8, 15\]; expected \[n, 16\]"):
        gemm(a, weight[:, :15].contiguous())
    with pytest.raises(ValueError, match=r"weight of torch\.float32; expected torch\.float16, the type of a"):
        gemm(a, weight.float())
    with pytest.raises(ValueError, match=r"bias of shape \[4\]; expected \[8\]"):
        gemm(a, weight, a[:, 0].contiguous())
    with pytest.raises(UnsupportedFormError, match=r"strides of a \(1, 4\); it has contiguous tensors"):
        gemm(a.T.contiguous().T, weight)
