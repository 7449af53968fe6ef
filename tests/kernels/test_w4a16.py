import pytest
import torch

from kernels.errors import UnsupportedFormError
from kernels.int4_layouts import Int4Weights, dequantise_int4, from_awq, from_gptq, pack_int4
from kernels.launch import LaunchConfig, interpreted
from kernels.w4a16 import launch_config, programs_of, w4a16, w4a16_reference
from tests.kernels.closeness import FLOAT_TYPES, assert_close

DTYPES = [dtype for dtype in FLOAT_TYPES if dtype != torch.float32]


def random_parts(k: int, n: int, group_size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Nibbles [k, n], scales and zeros [k / group, n]."""
    groups = k // group_size
    nibbles = torch.randint(0, 16, (k, n), dtype=torch.int32)
    scales = (torch.rand(groups, n) * 0.01 + 0.001).half()
    return nibbles, scales, torch.randint(0, 16, (groups, n), dtype=torch.int32)


def defined(nibbles: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | int) -> torch.Tensor:
    """``(q - zero) * scale``, written out."""
    repeats = len(nibbles) // len(scales)
    if isinstance(zeros, torch.Tensor):
        zeros = zeros.repeat_interleave(repeats, dim=0)
    return (nibbles - zeros).double() * scales.repeat_interleave(repeats, dim=0).double()


def packed_along(values: torch.Tensor, dim: int, order: tuple[int, ...] = tuple(range(8))) -> torch.Tensor:
    """Words of eight successive values; nibble ``i`` is value ``order[i]``."""
    shape = list(values.shape)
    shape[dim : dim + 1] = [shape[dim] // 8, 8]
    eights = values.reshape(shape).long().unbind(dim + 1)
    words = sum(eights[order[i]] << (4 * i) for i in range(8))
    return torch.where(words >= 2**31, words - 2**32, words).int()


def weights_on(device: torch.device, weights: Int4Weights) -> Int4Weights:
    words, both, arrivals = (t.to(device) for t in (weights.words, weights.scales_and_zeros, weights.arrivals))
    return Int4Weights(words, both, arrivals, weights.group_size, weights.k)


@pytest.mark.parametrize("group_size", [32, 64, 128])
def test_layouts_hold_what_their_formats_define(group_size: int) -> None:
    nibbles, scales, zeros = random_parts(384, 40, group_size)
    expected = defined(nibbles, scales, zeros)
    assert torch.equal(dequantise_int4(pack_int4(nibbles, scales, zeros)), expected)
    gptq_2 = from_gptq(packed_along(nibbles, 0), scales, packed_along(zeros, 1), stored_zero_offset=0)
    assert torch.equal(dequantise_int4(gptq_2), expected)
    gptq = from_gptq(packed_along(nibbles, 0), scales, packed_along(zeros, 1))
    assert torch.equal(dequantise_int4(gptq), defined(nibbles, scales, zeros + 1))
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    awq = from_awq(packed_along(nibbles, 1, order), scales, packed_along(zeros, 1, order))
    assert torch.equal(dequantise_int4(awq), expected)
    assert torch.equal(dequantise_int4(from_gptq(packed_along(nibbles, 0), scales)), defined(nibbles, scales, 8))


def test_a_depth_of_no_whole_blocks_is_filled_up() -> None:
    nibbles, scales, zeros = random_parts(160, 8, 32)
    weights = pack_int4(nibbles, scales, zeros)
    assert weights.words.shape == (2, 8, 16)
    assert torch.equal(dequantise_int4(weights), defined(nibbles, scales, zeros))


def test_refusals(device: torch.device) -> None:
    nibbles, scales, zeros = random_parts(128, 8, 64)
    with pytest.raises(UnsupportedFormError, match="group size 16; it has 32, 64, 128"):
        pack_int4(nibbles, torch.ones(8, 8))
    with pytest.raises(ValueError, match="exact in fp16"):
        pack_int4(nibbles, scales.float() + 1e-6, zeros)
    weights = weights_on(device, pack_int4(nibbles, scales, zeros))
    with pytest.raises(UnsupportedFormError, match="type"):
        w4a16(torch.ones(1, 128, device=device), weights)
    with pytest.raises(UnsupportedFormError, match="depth 96"):
        w4a16(torch.ones(1, 96, device=device).half(), weights)


def tiles(
    block_m: int, block_n: int, programs_per_processor: int, weights_first: bool, steps: int = 1, **more: object
) -> LaunchConfig:
    arguments = {
        "block_m": block_m,
        "block_n": block_n,
        "programs_per_processor": programs_per_processor,
        "weights_first": weights_first,
        "interleaved": False,
        "steps": steps,
        "parts": 4,
    }
    return LaunchConfig({**arguments, **more}, num_warps=4, num_stages=3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("m", "k", "n", "group_size", "config"),
    [
        (1, 128, 64, 128, None),  # one token, one block
        (3, 512, 136, 64, tiles(16, 64, 1, False, interleaved=True)),  # columns that cross tiles
        (16, 640, 64, 128, tiles(16, 64, 1, False)),  # one program
        (17, 416, 96, 32, tiles(16, 64, 2, False)),  # depth of no whole blocks
        (5, 1280, 192, 128, tiles(16, 64, 1, True)),  # programs that share one tile, and two
        (5, 2048, 320, 64, tiles(16, 64, 1, True, 2)),  # uneven shares, of two blocks each
        (70, 288, 72, 32, tiles(64, 64, 0, True, interleaved=True)),
        (64, 256, 200, 64, tiles(64, 64, 1, True, 2)),
        (0, 128, 64, 128, None),
    ],
)
def test_w4a16_equals_the_reference(
    device: torch.device, dtype: torch.dtype, m: int, k: int, n: int, group_size: int, config: LaunchConfig | None
) -> None:
    weights = weights_on(device, pack_int4(*random_parts(k, n, group_size)))
    a = torch.randn(m, k, device=device).to(dtype)
    out = w4a16(a, weights, config=config)
    assert out.shape == (m, n)
    if m:
        assert_close(out, w4a16_reference(a.double(), weights))
    assert not weights.arrivals.any()
    assert torch.equal(w4a16(a, weights, config=config), out)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_may_be_apart_and_have_a_mean_and_outliers(device: torch.device, dtype: torch.dtype) -> None:
    weights = weights_on(device, pack_int4(*random_parts(256, 64, 128)))
    wide = torch.randn(4, 320, device=device) + 1
    wide[:, 7] = 100
    a = wide.to(dtype)[:, :256]
    assert_close(w4a16(a, weights), w4a16_reference(a.double(), weights))


@pytest.mark.skipif(interpreted(), reason="the interpreter knows no assembly")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "weights_first", "block_m"), [(16, False, 16), (64, True, 64), (130, True, 128)])
@pytest.mark.parametrize("group_size", [32, 128])
@pytest.mark.parametrize("interleaved", [False, True])
def test_assembly_equals_the_plain_form(
    device: torch.device,
    dtype: torch.dtype,
    m: int,
    weights_first: bool,
    block_m: int,
    group_size: int,
    interleaved: bool,
) -> None:
    weights = weights_on(device, pack_int4(*random_parts(1024, 512, group_size)))
    a = torch.randn(m, 1024, device=device).to(dtype)
    assembly = w4a16(a, weights, config=tiles(block_m, 128, 2, weights_first, interleaved=interleaved))
    plain = w4a16(a, weights, config=tiles(block_m, 128, 2, weights_first, interleaved=interleaved, plain=True))
    assert torch.equal(assembly, plain)


@pytest.mark.skipif(interpreted(), reason="too large for the interpreter")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [1, 16, 33, 64, 300])
@pytest.mark.parametrize(("k", "n"), [(4096, 14336), (2880, 2880), (14336, 4096)])
def test_shipped_launches_at_full_size(device: torch.device, dtype: torch.dtype, m: int, k: int, n: int) -> None:
    weights = weights_on(device, pack_int4(*random_parts(k, n, 32 if k % 128 else 128)))
    a = torch.randn(m, k, device=device).to(dtype)
    assert_close(w4a16(a, weights), w4a16_reference(a.double(), weights))


def test_programs_share_tiles_only_where_each_has_some_blocks() -> None:
    for m in (1, 16, 64, 4096):
        for k, n in ((128, 64), (4096, 14336), (8192, 28672)):
            config = launch_config(m, n, k, 128, 90, 132)
            per_processor = config.tiles["programs_per_processor"]
            assert (per_processor > 0) == (m < 4096 and k > 128)
            assert programs_of(10, k // 128, per_processor, 132) * 4 <= 10 * (k // 128) or per_processor == 0
