import pytest
import torch

from kernels.errors import UnsupportedFormError
from kernels.kv_copy import (
    copy_blocks,
    copy_blocks_reference,
    gather_blocks,
    gather_blocks_reference,
    scatter_blocks,
    scatter_blocks_reference,
)

SHAPES = [
    ((9, 2, 16, 64), torch.float16, 0),
    ((9, 1, 16), torch.float32, 0),
    ((9, 3, 16, 40), torch.int8, 0),
    ((9, 1, 1, 7), torch.uint8, 0),
    ((3, 9, 2, 16, 64), torch.float8_e4m3fn, 1),
    ((2, 9, 5, 3), torch.float32, 1),
    ((9, 8, 32, 128), torch.bfloat16, 0),
]


def random_cache(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    size = torch.Size(shape).numel() * dtype.itemsize
    return torch.randint(256, (size,), dtype=torch.uint8, device=device).view(dtype).view(shape)


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return (
        left.shape == right.shape
        and left.dtype == right.dtype
        and left.view(torch.uint8).equal(right.view(torch.uint8))
    )


@pytest.mark.parametrize(("shape", "dtype", "axis"), SHAPES)
@pytest.mark.parametrize("blocks", [[4], [8, 0, 3], []])
@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_equals_the_reference(
    device: torch.device, shape: tuple[int, ...], dtype: torch.dtype, axis: int, blocks: list[int], index: torch.dtype
) -> None:
    cache = random_cache(shape, dtype, device)
    chosen = torch.tensor(blocks, dtype=index, device=device)
    buffer = gather_blocks(cache, chosen, axis)
    assert same(buffer, gather_blocks_reference(cache, chosen, axis))
    other = random_cache(shape, dtype, device)
    assert same(
        scatter_blocks(buffer, other.clone(), chosen, axis), scatter_blocks_reference(buffer, other, chosen, axis)
    )
    destinations = torch.tensor([1, 7, 6][: len(blocks)], dtype=index, device=device)
    copied = copy_blocks(cache.clone(), chosen, destinations, axis)
    assert same(copied, copy_blocks_reference(cache, chosen, destinations, axis))


def test_what_is_swapped_out_comes_back_elsewhere(device: torch.device) -> None:
    cache = random_cache((2, 6, 2, 16, 8), torch.int8, device)
    before = cache.clone()
    buffer = gather_blocks(cache, torch.tensor([5, 1], device=device), axis=1)
    scatter_blocks(buffer, cache, torch.tensor([2, 3], device=device), axis=1)
    assert torch.equal(cache[:, [2, 3]], before[:, [5, 1]])
    assert torch.equal(cache[:, [0, 1, 4, 5]], before[:, [0, 1, 4, 5]])


def test_refuses_forms_that_do_not_exist(device: torch.device) -> None:
    cache = random_cache((4, 2, 8), torch.int8, device)
    block = torch.tensor([0], device=device)
    with pytest.raises(UnsupportedFormError, match="axis 2; it has 0, 1"):
        gather_blocks(cache, block, axis=2)
    with pytest.raises(UnsupportedFormError, match="contiguous"):
        gather_blocks(cache.transpose(1, 2), block)
