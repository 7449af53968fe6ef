import math

import pytest
import torch

from kernels.errors import UnsupportedFormError
from kernels.launch import LaunchConfig
from kernels.mla_decode import mla_decode, mla_decode_reference
from tests.kernels.closeness import FLOAT_TYPES, assert_close


def check(
    device: torch.device,
    lengths: list[int],
    *,
    heads: int = 16,
    block_size: int = 64,
    dtype: torch.dtype = torch.float16,
    config: LaunchConfig | None = None,
    **options: int | None,
) -> None:
    """Compare on random inputs whose blocks are in random order and whose unused slots are poison."""
    counts = [math.ceil(length / block_size) for length in lengths]
    order = torch.randperm(sum(counts) + 1).to(torch.int32)
    tables = torch.full((len(lengths), max(counts)), 2**31 - 1, dtype=torch.int32)  # entries not to be followed
    cache = torch.full((len(order), block_size, 576), torch.nan, dtype=dtype)
    given = 0
    for request, (length, count) in enumerate(zip(lengths, counts, strict=True)):
        tables[request, :count] = order[given : given + count]
        given += count
        for block in range(count):
            filled = min(block_size, length - block * block_size)
            cache[tables[request, block], :filled] = torch.randn(filled, 576).to(dtype)
    q = torch.randn(len(lengths), heads, 576).to(dtype).to(device)
    context_lengths = torch.tensor(lengths, dtype=torch.int32, device=device)
    arguments = (cache.to(device), tables.to(device), context_lengths, 1 / math.sqrt(192))
    options = {"max_context_tokens": max(lengths), **options}
    out = mla_decode(q, *arguments, config=config, **options)
    assert out.dtype == dtype
    assert_close(out, mla_decode_reference(q.double(), *arguments, **options))


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("splits", [1, 3, None])
def test_mla_decode_equals_the_reference(device: torch.device, dtype: torch.dtype, splits: int | None) -> None:
    check(device, [1, 0, 130, 64, 200], dtype=dtype, splits=splits)


@pytest.mark.parametrize("block_size", [16, 32, 64, 128])
def test_every_block_size(device: torch.device, block_size: int) -> None:
    check(device, [129, 5], block_size=block_size, splits=2)


@pytest.mark.parametrize("heads", [1, 16, 24, 40, 128])
def test_every_number_of_heads(device: torch.device, heads: int) -> None:
    check(device, [70, 33], heads=heads)


def test_a_context_of_16k(device: torch.device) -> None:
    check(device, [16384], splits=4)


def test_contexts_longer_than_announced_are_read_to_their_end(device: torch.device) -> None:
    check(device, [200, 70], splits=2, max_context_tokens=64)


def test_other_forms_are_refused(device: torch.device) -> None:
    with pytest.raises(UnsupportedFormError, match="block size 8; it has 16"):
        check(device, [5], block_size=8)
