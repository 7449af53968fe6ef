import math
from typing import Any

import pytest
import torch

from kernels.errors import UnsupportedFormError
from kernels.flash_prefill import flash_prefill, flash_prefill_reference
from kernels.launch import LaunchConfig
from tests.kernels.closeness import FLOAT_TYPES, assert_close
from tests.kernels.prefill_batches import batch, paged_prefix

HALF = torch.float16


def tile(block_m: int, block_n: int, descriptors: bool, block_d: int = 64) -> LaunchConfig:
    tiles = {"block_d": block_d, "block_m": block_m, "block_n": block_n}
    return LaunchConfig({**tiles, "descriptors": descriptors}, 4, 2)


SMALL = tile(32, 16, descriptors=False)


def check(arguments: tuple[Any, ...], tokens: int, config: LaunchConfig | None = None, **options: Any) -> None:
    out = flash_prefill(*arguments, config=config, **options)
    q, *others = arguments
    assert_close(out[:tokens], flash_prefill_reference(q.double(), *others, **options)[:tokens])


@pytest.mark.parametrize("head_dim", [64, 96, 128, 256])
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_shipped_tiles_equal_the_reference(device: torch.device, dtype: torch.dtype, head_dim: int) -> None:
    check(*batch(device, dtype, [1, 0, 150, 128], 2, 1, head_dim))


@pytest.mark.parametrize("heads", [(1, 1), (2, 2), (3, 1), (4, 2)])
@pytest.mark.parametrize("lengths", [[1], [33, 48, 1, 0]])
@pytest.mark.parametrize("descriptors", [False, True])
def test_heads_and_lengths(device: torch.device, heads: tuple[int, int], lengths: list[int], descriptors: bool) -> None:
    check(*batch(device, HALF, lengths, *heads, 64), config=tile(32, 16, descriptors))


@pytest.mark.parametrize("window", [1, 5, 32, 40, 1000])
@pytest.mark.parametrize(("block_m", "block_n", "descriptors"), [(32, 16, False), (16, 32, True)])
def test_window(device: torch.device, window: int, block_m: int, block_n: int, descriptors: bool) -> None:
    check(*batch(device, HALF, [100, 7], 1, 1, 64), config=tile(block_m, block_n, descriptors), window=window)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("window", [0, 20])
def test_soft_cap_and_sinks(device: torch.device, dtype: torch.dtype, window: int) -> None:
    arguments, tokens = batch(device, dtype, [60, 3], 2, 1, 64)
    sinks = torch.randn(2, device=device) * 3
    for options in ({"sinks": sinks}, {"soft_cap": 2.0}, {"soft_cap": 2.0, "sinks": sinks}):
        check(arguments, tokens, config=SMALL, window=window, **options)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("block_size", [16, 32, 64, 128])
def test_prefix(device: torch.device, dtype: torch.dtype, block_size: int) -> None:
    prefixes = [0, 1, 40, 128]
    arguments, tokens = batch(device, dtype, [20, 1, 33, 5], 2, 2, 64)
    check(arguments, tokens, config=SMALL, **paged_prefix(device, dtype, prefixes, 2, 64, block_size))


@pytest.mark.parametrize("window", [8, 30, 60])
def test_window_over_a_prefix(device: torch.device, window: int) -> None:
    arguments, tokens = batch(device, HALF, [20, 1, 45, 40], 2, 1, 96)
    cache = paged_prefix(device, HALF, [50, 17, 3, 0], 1, 96, 16)
    sinks = torch.randn(2, device=device)
    check(arguments, tokens, config=tile(32, 16, False, 128), window=window, sinks=sinks, soft_cap=5.0, **cache)


@pytest.mark.parametrize("kind", [torch.int8, torch.float8_e4m3fn])
@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_quantised_prefix(device: torch.device, dtype: torch.dtype, kind: torch.dtype) -> None:
    if kind == torch.float8_e4m3fn and device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 9):
        pytest.skip("this GPU has no fp8")
    arguments, tokens = batch(device, dtype, [20, 1, 33], 2, 1, 64)
    check(arguments, tokens, config=SMALL, **paged_prefix(device, kind, [37, 16, 0], 1, 64, 16))


@pytest.mark.parametrize("kind", [HALF, torch.int8, torch.float8_e4m3fn])
def test_shipped_tiles_with_window_cap_and_sinks_over_a_prefix(device: torch.device, kind: torch.dtype) -> None:
    if kind == torch.float8_e4m3fn and device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 9):
        pytest.skip("this GPU has no fp8")
    arguments, tokens = batch(device, HALF, [70, 1, 0, 9], 2, 1, 128)
    cache = paged_prefix(device, kind, [90, 33, 5, 0], 1, 128, 32)
    sinks = torch.randn(2, device=device)
    for options in ({"window": 40}, {"window": 40, "soft_cap": 4.0, "sinks": sinks}, {"soft_cap": 4.0}):
        check(arguments, tokens, **options, **cache)


def test_shipped_tiles_over_a_prefix(device: torch.device) -> None:
    arguments, tokens = batch(device, HALF, [130, 2], 2, 1, 128)
    check(arguments, tokens, **paged_prefix(device, HALF, [200, 128], 1, 128, 16))


def test_long_context(device: torch.device) -> None:
    arguments, tokens = batch(device, HALF, [5, 2], 1, 1, 64)
    cache = paged_prefix(device, HALF, [16384, 16383], 1, 64, 128)
    check(arguments, tokens, config=tile(16, 128, descriptors=False), **cache)


def test_neighbours_do_not_matter(device: torch.device) -> None:
    (q, k, v, starts, *others), _ = batch(device, HALF, [50, 30], 1, 1, 64)
    configs = [tile(32, 16, False), tile(32, 16, True)]
    for config in configs:
        clean = flash_prefill(q, k, v, starts, *others, config=config)[:50]
        poisoned = [tensor.clone() for tensor in (q, k, v)]
        for tensor in poisoned:
            tensor[50:] = math.nan
        assert torch.equal(flash_prefill(*poisoned, starts, *others, config=config)[:50], clean)


def test_nothing_to_do(device: torch.device) -> None:
    (q, k, v, *_), _ = batch(device, HALF, [4], 1, 1, 64)
    empty = flash_prefill(q[:0], k[:0], v[:0], torch.zeros(3, dtype=torch.int32, device=device), 0, 1.0)
    assert empty.shape == (0, 1, 64)


def test_refuses_what_it_has_no_form_for(device: torch.device) -> None:
    (q, k, v, *others), _ = batch(device, HALF, [4], 2, 1, 64)
    with pytest.raises(UnsupportedFormError, match="head_dim 32; it has 64, 96, 128, 256"):
        flash_prefill(q[..., :32], k[..., :32], v[..., :32], *others)
    with pytest.raises(UnsupportedFormError, match="data type torch\\.float64"):
        flash_prefill(q.double(), k, v, *others)
    with pytest.raises(UnsupportedFormError, match="heads 3; it has multiples of its 2 kv_heads"):
        flash_prefill(torch.cat((q, q[:, :1]), 1), q, q, *others)
    with pytest.raises(UnsupportedFormError, match="scale 0"):
        flash_prefill(q, k, v, *others[:-1], 0.0)
    cache = paged_prefix(device, torch.int8, [16], 1, 64, 16)
    with pytest.raises(UnsupportedFormError, match="data type of key_cache torch\\.int8; it has torch\\.float16"):
        flash_prefill(q, k, v, *others, **{**cache, "key_scales": None})
    with pytest.raises(UnsupportedFormError, match="block_tables None"):
        flash_prefill(q, k, v, *others, **{**cache, "block_tables": None})
