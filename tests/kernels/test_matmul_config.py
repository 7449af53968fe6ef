from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from kernels.matmul_config import Items, by_tma, matmul_config, resident_programs, tma_config

SIZES = st.integers(1, 40_000)
ITEMS = st.sampled_from(get_args(Items))


@given(SIZES, SIZES, SIZES, ITEMS, st.sampled_from([80, 86, 89, 90, 100, 120]))
def test_the_choice_fits_the_shape(m: int, n: int, k: int, items: Items, capability: int) -> None:
    tiles = matmul_config(m, n, k, items, capability).tiles
    assert all(tiles[name] & (tiles[name] - 1) == 0 for name in ("block_m", "block_n", "block_k"))
    if items.endswith("by block"):
        assert 128 % tiles["block_k"] == 0
        assert tiles["block_n"] <= 128
    if "splits" in tiles:
        steps = -(-k // tiles["block_k"])
        assert tiles["splits"] <= max(1, steps // 4), "a part would be short, or empty"


@given(SIZES, SIZES, SIZES, ITEMS, st.sampled_from([80, 89, 90, 100, 120]))
def test_tensor_descriptors_are_for_aligned_shapes_on_chips_that_have_them(
    m: int, n: int, k: int, items: Items, capability: int
) -> None:
    if by_tma(matmul_config(m, n, k, items, capability)):
        assert 90 <= capability < 120
        assert n % 16 == k % 16 == 0


def test_prefill_takes_the_largest_tiles() -> None:
    tiles = matmul_config(8192, 8192, 8192, "16-bit", 90).tiles
    assert (tiles["block_m"], tiles["block_n"]) == (128, 256)


def test_few_rows_of_a_narrow_weight_are_split() -> None:
    assert matmul_config(1, 512, 8192, "16-bit", 90).tiles["splits"] > 1


def test_small_programs_share_a_multiprocessor() -> None:
    large = tma_config(128, 256, 64, store_n=128, num_warps=8, num_stages=4)
    small = tma_config(64, 128, 128, store_n=64, num_warps=4, num_stages=3)
    assert resident_programs(large, 2, 2) == 1
    assert resident_programs(small, 1, 2) == 2
