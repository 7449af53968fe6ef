import pytest
import torch
import triton
import triton.language as tl
from scipy import stats

from kernels.random_numbers import (
    exponentials,
    exponentials_kernel,
    philox,
    random_words,
    random_words_kernel,
    uniforms,
    uniforms_kernel,
)
from tests.kernels.closeness import assert_close


@triton.jit
def _fill(seeds, requests, positions, words, uniform, exponential, first, rows: tl.constexpr, block: tl.constexpr):
    row = tl.arange(0, rows)
    keys = tl.load(seeds + row), tl.load(requests + row), tl.load(positions + row)
    drawn = random_words_kernel(keys[0], keys[1], keys[2], first, 1, rows, block)
    offsets = row[:, None] * block + tl.arange(0, block)[None, :]
    tl.store(words + offsets, drawn.to(tl.int64))
    tl.store(uniform + offsets, uniforms_kernel(drawn))
    tl.store(exponential + offsets, exponentials_kernel(drawn))


@triton.jit
def _exponentials_of(words, out, block: tl.constexpr):
    offsets = tl.arange(0, block)
    tl.store(out + offsets, exponentials_kernel(tl.load(words + offsets).to(tl.uint32)))


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_the_generator_gives_the_words_its_authors_publish(
    counter: list[int], key: list[int], expected: list[int]
) -> None:
    words = philox([torch.tensor([word]) for word in counter], (torch.tensor([key[0]]), torch.tensor([key[1]])))
    assert [int(word) for word in words] == expected


def test_kernel_and_reference_draw_the_same(device: torch.device) -> None:
    seeds = torch.tensor([0, 1, -1, 2**40 + 17], device=device)
    requests = torch.tensor([5, 0, 2**32 - 1, 7], device=device)
    positions = torch.tensor([0, 131072, 3, 2**31], device=device)
    words = torch.empty(4, 64, dtype=torch.int64, device=device)
    uniform, exponential = torch.empty(2, 4, 64, device=device)
    _fill[(1,)](seeds, requests, positions, words, uniform, exponential, 1000, rows=4, block=64)
    expected = random_words(seeds, requests, positions, 1, 1064)[:, 1000:]
    assert torch.equal(words, expected)
    assert torch.equal(uniform.double(), uniforms(expected))
    assert_close(exponential, exponentials(expected), tolerance=1e-6)


def test_small_exponentials_are_exact_to_float32(device: torch.device) -> None:
    words = torch.logspace(0, 32, 4096, base=2, dtype=torch.float64, device=device).long() - 1
    out = torch.empty(4096, device=device)
    _exponentials_of[(1,)](words, out, block=4096)
    error = (out.double() - exponentials(words)).abs() / exponentials(words)
    assert error[words < 2**31].max() < 1e-6  # above, float32 has no more bits between v and 1


def test_exponentials_are_exponential() -> None:
    rows = torch.arange(2000)
    words = random_words(torch.full_like(rows, 11), rows, rows % 7, 0, 500).flatten()
    assert stats.kstest(exponentials(words).numpy(), "expon").pvalue > 1e-3
    assert stats.kstest(uniforms(words).numpy(), "uniform").pvalue > 1e-3
