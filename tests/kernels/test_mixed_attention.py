from typing import Any

import pytest
import torch

from kernels.errors import UnsupportedFormError
from kernels.launch import LaunchConfig
from kernels.mixed_attention import mixed_attention, mixed_attention_reference
from tests.kernels.closeness import FLOAT_TYPES, assert_close
from tests.kernels.prefill_batches import batch, paged_prefix

HALF = torch.float16
SMALL = LaunchConfig({"block_d": 64, "block_m": 32, "block_n": 16, "decode_n": 32, "descriptors": False}, 4, 2)


def check(
    arguments: tuple[Any, ...], tokens: int, decodes: int, config: LaunchConfig | None = None, **options: Any
) -> None:
    *batch_arguments, scale = arguments
    out = mixed_attention(*batch_arguments, decodes, scale, config=config, **options)
    q, *others = batch_arguments
    assert_close(out[:tokens], mixed_attention_reference(q.double(), *others, decodes, scale, **options)[:tokens])


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("heads", [(2, 2), (6, 2), (4, 1)])
def test_decodes_and_chunks(device: torch.device, dtype: torch.dtype, heads: tuple[int, int]) -> None:
    arguments, tokens = batch(device, dtype, [1, 1, 1, 0, 1, 40], *heads, 64)
    cache = paged_prefix(device, dtype, [0, 33, 64, 5, 20, 17], heads[1], 64, 16)
    check(arguments, tokens, 3, config=SMALL, **cache)


@pytest.mark.parametrize("decodes", [0, 1, 2])
def test_chunks_of_one_token_are_as_good_as_decodes(device: torch.device, decodes: int) -> None:
    arguments, tokens = batch(device, HALF, [1, 1], 2, 1, 96)
    check(arguments, tokens, decodes, **paged_prefix(device, HALF, [70, 16], 1, 96, 32))


@pytest.mark.parametrize("window", [1, 8, 40])
def test_window_sinks_and_cap(device: torch.device, window: int) -> None:
    arguments, tokens = batch(device, HALF, [1, 1, 35], 4, 2, 64)
    cache = paged_prefix(device, HALF, [50, 3, 20], 2, 64, 16)
    sinks = torch.randn(4, device=device)
    check(arguments, tokens, 2, config=SMALL, window=window, sinks=sinks, soft_cap=3.0, **cache)


@pytest.mark.parametrize("kind", [torch.int8, torch.float8_e4m3fn])
def test_quantised_cache(device: torch.device, kind: torch.dtype) -> None:
    if kind == torch.float8_e4m3fn and device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 9):
        pytest.skip("this GPU has no fp8")
    arguments, tokens = batch(device, HALF, [1, 1, 20], 2, 1, 64)
    check(arguments, tokens, 2, config=SMALL, **paged_prefix(device, kind, [37, 16, 9], 1, 64, 16))


@pytest.mark.parametrize("head_dim", [64, 128, 256])
def test_shipped_tiles_equal_the_reference(device: torch.device, head_dim: int) -> None:
    arguments, tokens = batch(device, HALF, [1, 130], 2, 1, head_dim)
    check(arguments, tokens, 1, **paged_prefix(device, HALF, [100, 40], 1, head_dim, 16))


def test_long_context(device: torch.device) -> None:
    arguments, tokens = batch(device, HALF, [1], 1, 1, 64)
    config = LaunchConfig({**SMALL.tiles, "decode_n": 128}, 4, 2)
    check(arguments, tokens, 1, config=config, **paged_prefix(device, HALF, [16383], 1, 64, 128))


def test_refuses_what_it_has_no_form_for(device: torch.device) -> None:
    (*arguments, scale), _ = batch(device, HALF, [1, 3], 2, 1, 64)
    cache = paged_prefix(device, HALF, [16, 0], 1, 64, 16)
    with pytest.raises(UnsupportedFormError, match="mixed_attention has no form with decodes 3; it has 0 to 2"):
        mixed_attention(*arguments, 3, scale, **cache)
    with pytest.raises(UnsupportedFormError, match="mixed_attention has no form with scale -1"):
        mixed_attention(*arguments, 1, -1.0, **cache)
