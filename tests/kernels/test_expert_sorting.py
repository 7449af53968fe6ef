import pytest
import torch

from kernels.expert_sorting import max_tiles, sort_tokens_by_expert, sort_tokens_by_expert_reference
from kernels.launch import LaunchConfig

SMALL_CHUNKS = LaunchConfig({"chunk": 64}, num_warps=4, num_stages=1)


def distinct_experts(tokens: int, k: int, experts: int) -> torch.Tensor:
    return torch.rand(tokens, experts).argsort(dim=1)[:, :k].int()


@pytest.mark.parametrize("config", [None, SMALL_CHUNKS], ids=["one chunk", "several chunks"])
@pytest.mark.parametrize("block_m", [16, 64])
@pytest.mark.parametrize(
    ("tokens", "k", "experts"), [(1, 1, 1), (1, 8, 128), (70, 2, 8), (33, 4, 32), (100, 1, 5), (0, 2, 8), (45, 8, 257)]
)
def test_sorting_equals_the_reference(
    device: torch.device, config: LaunchConfig | None, block_m: int, tokens: int, k: int, experts: int
) -> None:
    ids = distinct_experts(tokens, k, experts).to(device)
    assert_equal_order(ids, experts, block_m, config)


@pytest.mark.parametrize("expert", [0, 3, 7])
def test_all_tokens_may_visit_one_expert(device: torch.device, expert: int) -> None:
    ids = torch.full((130, 1), expert, dtype=torch.int32, device=device)
    assert_equal_order(ids, 8, 16, SMALL_CHUNKS)


def assert_equal_order(ids: torch.Tensor, experts: int, block_m: int, config: LaunchConfig | None) -> None:
    order = sort_tokens_by_expert(ids, experts, block_m, config=config)
    expected = sort_tokens_by_expert_reference(ids, experts, block_m)
    for name in ("copies", "expert_starts", "tiles", "tile_experts", "tile_starts"):
        assert torch.equal(getattr(order, name), getattr(expected, name)), name


def test_the_most_tiles_are_reached_and_not_exceeded() -> None:
    assert max_tiles(1, 8, 16) == 1
    assert max_tiles(8, 8, 16) == 8
    assert max_tiles(8 + 16, 8, 16) == 9
    assert max_tiles(0, 8, 16) == 0
