import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.split_reduction import choose_splits, reduce_splits, split_evenly
from tests.kernels.closeness import FLOAT_TYPES, assert_close


@given(st.integers(0, 100_000), st.integers(1, 128), st.sampled_from([16, 64, 128]))
def test_splits_cover_the_context_and_none_is_for_nothing(tokens: int, splits: int, tile_tokens: int) -> None:
    split_tokens, count = split_evenly(tokens, splits, tile_tokens)
    assert split_tokens % tile_tokens == 0
    assert 1 <= count <= splits
    assert count * split_tokens >= tokens > (count - 1) * split_tokens or tokens == 0


@given(st.integers(1, 5000), st.integers(1, 200), st.integers(1, 3), st.integers(0, 200))
def test_no_more_splits_than_allowed(programs: int, processors: int, each: int, most: int) -> None:
    splits = choose_splits(programs, processors, each * processors, 2**30, 2**17, most)
    assert 1 <= splits <= max(1, min(most, 128))


def test_a_full_chip_is_not_split_and_an_empty_one_is_filled() -> None:
    assert choose_splits(264, 132, 264, 2**30, 2**21, 64) == 1
    assert choose_splits(8, 132, 264, 2**32, 2**16, 64) == 33


def test_costly_splits_leave_one_program_to_a_multiprocessor() -> None:
    assert choose_splits(8, 132, 264, 2**26, 2**20, 64) == 16


def test_a_second_kernel_must_pay() -> None:
    assert choose_splits(200, 132, 264, 2**20, 2**16, 64) == 1
    assert choose_splits(200, 132, 264, 2**30, 2**16, 64) > 1


@settings(max_examples=5, deadline=None)
@given(st.data())
def test_parts_make_the_whole(data: st.DataObject) -> None:
    splits = data.draw(st.integers(1, 20))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    logits = torch.randn(2, 3, splits, 5, dtype=torch.float64) * 3
    values = torch.randn(2, 3, splits, 5, 96, dtype=torch.float64)
    empty = torch.rand(2, 3, splits) < 0.3
    empty[0, 0] = True
    logits[empty] = -torch.inf
    log_sums = torch.logsumexp(logits, -1) / torch.log(torch.tensor(2.0))
    partial = (torch.softmax(logits, -1)[..., None] * values).sum(-2)  # not-a-number where empty
    whole = torch.softmax(logits.flatten(2), -1).nan_to_num()[..., None] * values.flatten(2, 3)
    out = torch.empty(2, 3, 96, dtype=torch.float32, device=device)
    reduce_splits(partial.float().to(device), log_sums.float().to(device), None, out)
    assert_close(out, whole.sum(-2).to(device))


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_sinks_take_their_share(device: torch.device, dtype: torch.dtype) -> None:
    partial = torch.randn(1, 2, 1, 64, device=device)
    out = torch.empty(1, 2, 64, dtype=dtype, device=device)
    log_sums = torch.zeros(1, 2, 1, device=device)  # a denominator of one
    reduce_splits(partial, log_sums, torch.tensor([0.0, -torch.inf], device=device), out)
    assert_close(out, partial[:, :, 0] * torch.tensor([[0.5], [1.0]], device=device))
