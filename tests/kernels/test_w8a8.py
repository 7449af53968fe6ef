import pytest
import torch

from kernels.errors import UnsupportedFormError
from kernels.launch import LaunchConfig, capability
from kernels.matmul_config import pointer_config, tma_config
from kernels.w8a8 import DTYPES, w8a8, w8a8_reference
from tests.kernels.closeness import FLOAT_TYPES, assert_close

OUT_DTYPES = [dtype for dtype in FLOAT_TYPES if dtype != torch.float32]
SPLIT = pointer_config(16, 64, 128, 3, num_warps=4, num_stages=3, promote=True)
TMA = tma_config(64, 128, 128, store_n=64, num_warps=4, num_stages=3)
PROMOTED = tma_config(64, 128, 128, store_n=128, num_warps=4, num_stages=3, promote=True)
SCALES = ["tensor", "token x channel", "token", "block"]


@pytest.fixture(params=DTYPES, ids=["int8", "fp8"])
def dtype(request: pytest.FixtureRequest, device: torch.device) -> torch.dtype:
    if request.param == torch.float8_e4m3fn and capability(device) < 89:
        pytest.skip("this GPU has no fp8")
    found: torch.dtype = request.param
    return found


def integers_or_floats(device: torch.device, dtype: torch.dtype, rows: int, columns: int) -> torch.Tensor:
    """Values over the whole range, subnormal fp8 among them."""
    values = torch.randn(rows, columns, device=device)
    if dtype == torch.int8:
        return (values * 45).round().clamp(-127, 127).to(torch.int8)
    magnitude = torch.randint(-9, 7, (rows, columns), device=device)
    return (values * 2.0**magnitude).clamp(-448, 448).to(torch.float8_e4m3fn)


def scale_pair(device: torch.device, form: str, m: int, n: int, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    blocks = -(-k // 128)
    shapes: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
        "tensor": ((1,), (1,)),
        "token x channel": ((m,), (n,)),
        "token": ((m,), (1,)),
        "block": ((m, blocks), (-(-n // 128), blocks)),
    }
    first, second = shapes[form]
    return torch.rand(first, device=device) / 64 + 1e-3, torch.rand(second, device=device) / 64 + 1e-3


def check(
    device: torch.device,
    dtype: torch.dtype,
    out_dtype: torch.dtype,
    form: str,
    shape: tuple[int, int, int],
    config: LaunchConfig | None = None,
    bias: bool = False,
) -> None:
    m, n, k = shape
    a, weight = integers_or_floats(device, dtype, m, k), integers_or_floats(device, dtype, n, k)
    offset = torch.randn(n, device=device).to(out_dtype) if bias else None
    scales = scale_pair(device, form, m, n, k)
    out = w8a8(a, weight, *scales, out_dtype, offset, config=config)
    assert out.dtype == out_dtype
    assert_close(out, w8a8_reference(a, weight, *scales, torch.float64, offset))


@pytest.mark.parametrize("out_dtype", OUT_DTYPES)
@pytest.mark.parametrize("form", SCALES)
@pytest.mark.parametrize("shape", [(1, 144, 272), (21, 33, 128), (70, 130, 256), (3, 7, 131)])
def test_shipped_configurations_equal_the_reference(
    device: torch.device, dtype: torch.dtype, out_dtype: torch.dtype, form: str, shape: tuple[int, int, int]
) -> None:
    check(device, dtype, out_dtype, form, shape, bias=shape[0] == 21)


@pytest.mark.parametrize("out_dtype", OUT_DTYPES)
@pytest.mark.parametrize("form", SCALES)
@pytest.mark.parametrize("config", [TMA, PROMOTED, SPLIT], ids=["tma", "promoted", "split"])
def test_both_kernels_equal_the_reference(
    device: torch.device, dtype: torch.dtype, out_dtype: torch.dtype, form: str, config: LaunchConfig
) -> None:
    check(device, dtype, out_dtype, form, (70, 208, 272), config)


@pytest.mark.parametrize("form", ["token x channel", "block"])
def test_many_rows_equal_the_reference(device: torch.device, dtype: torch.dtype, form: str) -> None:
    if device.type == "cpu" and dtype != torch.int8:
        pytest.skip("the interpreter takes long for fp8, which it has seen in smaller tiles")
    check(device, dtype, torch.float16, form, (1153, 1296, 32 if device.type == "cpu" else 4000))


@pytest.mark.parametrize("out_dtype", OUT_DTYPES)
@pytest.mark.parametrize("k", [4096, 16384])
@pytest.mark.parametrize("rows", [4, 1100], ids=["few", "many"])
def test_long_sums_equal_the_reference(
    device: torch.device, dtype: torch.dtype, out_dtype: torch.dtype, k: int, rows: int
) -> None:
    if device.type == "cpu" and rows > 4:
        pytest.skip("how tensor cores sum shows on a GPU only")
    n = 16 if rows == 4 else 2048
    check(device, dtype, out_dtype, "token x channel", (rows, n, k))


def test_nothing_in_is_nothing_out(device: torch.device) -> None:
    a, weight = (
        torch.empty(0, 128, dtype=torch.int8, device=device),
        torch.zeros(8, 128, dtype=torch.int8, device=device),
    )
    scale = torch.ones(1, device=device)
    assert w8a8(a, weight, scale, scale).shape == (0, 8)


def test_what_does_not_fit_is_refused(device: torch.device) -> None:
    a, weight = (torch.ones(rows, 256, dtype=torch.int8, device=device) for rows in (4, 130))
    scale = torch.ones(1, device=device)
    with pytest.raises(UnsupportedFormError, match=r"w8a8 has no form with dtype torch\.float16; it has torch\.int8"):
        w8a8(a.half(), weight.half(), scale, scale)
    with pytest.raises(UnsupportedFormError, match=r"w8a8 has no form with out_dtype torch\.float32"):
        w8a8(a, weight, scale, scale, torch.float32)
    with pytest.raises(ValueError, match=r"a_scales of shape \[3\]; expected \[1\] or \[4\] or \[4, 2\]"):
        w8a8(a, weight, scale.expand(3).contiguous(), scale)
    with pytest.raises(ValueError, match=r"weight_scales of shape \[1\]; expected \[2, 2\]"):
        w8a8(a, weight, torch.ones(4, 2, device=device), scale)
    with pytest.raises(ValueError, match=r"a_scales of torch\.float16"):
        w8a8(a, weight, scale.half(), scale)
