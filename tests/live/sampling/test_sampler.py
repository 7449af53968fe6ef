import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernels.sampling import sample_reference
from live.sampling.parameters import SamplingParameters
from live.sampling.sampler import Row, Sampled, sample_rows
from simcore.core.errors import InputError

VOCABULARY = 1000


def logits(rows: int, seed: int = 0, vocabulary: int = VOCABULARY) -> torch.Tensor:
    return torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(seed)) * 3


@given(
    seed=st.integers(-(2**63), 2**63 - 1),
    branch=st.integers(0, 2**32 - 1),
    position=st.integers(0, 2**32 - 1),
    temperature=st.floats(0.1, 5),
    top_k=st.sampled_from([0, 1, 5, 300, VOCABULARY, 2 * VOCABULARY]),
    top_p=st.sampled_from([1.0, 0.99, 0.7, 0.3, 0.01]),
)
def test_a_draw_is_that_of_the_kernels(
    seed: int, branch: int, position: int, temperature: float, top_k: int, top_p: float
) -> None:
    row = logits(1, seed % 1000)
    columns = [torch.tensor([value], dtype=torch.float32) for value in (temperature, top_p)]
    numbers = [torch.tensor([value]) for value in (seed, branch, position)]
    parameters = SamplingParameters(float(columns[0]), float(columns[1]), top_k, seed)
    expected = sample_reference(row, columns[0], torch.tensor([top_k]), columns[1], *numbers)
    assert sample_rows(row, [Row(parameters, position, branch)])[0].token == int(expected)


def test_equal_logits_stand_or_fall_together() -> None:
    row = torch.tensor([[1.0, 3.0, 3.0, 3.0, 2.0, -math.inf]])
    found = {
        sample_rows(row, [Row(SamplingParameters(top_k=2, top_p=0.1), position)])[0].token for position in range(60)
    }
    assert found == {1, 2, 3}


def test_a_draw_does_not_depend_on_the_batch() -> None:
    batch = logits(5)
    rows = [Row(SamplingParameters(temperature, 0.9, 50, seed=7), 11) for temperature in (0.5, 0.0, 1.0, 2.0, 0.8)]
    together = [sampled.token for sampled in sample_rows(batch, rows)]
    alone = [sample_rows(batch[index : index + 1], [row])[0].token for index, row in enumerate(rows)]
    reversed_ = [sampled.token for sampled in sample_rows(batch.flip(0), rows[::-1])][::-1]
    assert together == alone == reversed_


def test_greedy_takes_the_first_of_the_likeliest() -> None:
    row = torch.tensor([[0.0, 5.0, 5.0, 1.0]])
    assert sample_rows(row, [Row(SamplingParameters(temperature=0.0), 3)]) == [Sampled(1)]


def test_draws_follow_the_probabilities() -> None:
    row = torch.tensor([[0.0, math.log(2), math.log(5), -math.inf]])
    draws = 2000
    counts = Counter(
        sample_rows(row, [Row(SamplingParameters(seed=position % 5), position)])[0].token for position in range(draws)
    )
    for token, share in enumerate((1 / 8, 2 / 8, 5 / 8)):
        assert abs(counts[token] / draws - share) < 4 * math.sqrt(share * (1 - share) / draws)


def test_branches_draw_independently() -> None:
    row = logits(1)
    found = {sample_rows(row, [Row(SamplingParameters(temperature=3.0), 5, branch)])[0].token for branch in range(20)}
    assert len(found) > 10


def test_logprobs_are_those_of_the_model() -> None:
    batch = logits(3)
    rows = [
        Row(SamplingParameters(0.0, logprobs=3), 0),
        Row(SamplingParameters(0.0), 0),
        Row(SamplingParameters(0.5, top_k=5, logprobs=0), 4),
    ]
    first, second, third = sample_rows(batch, rows)
    expected = batch.log_softmax(1)
    assert first.logprob == pytest.approx(float(expected[0].max()))
    assert [token for token, _ in first.likeliest] == batch[0].topk(3).indices.tolist()
    assert [log for _, log in first.likeliest] == pytest.approx(expected[0].topk(3).values.tolist())
    assert second == Sampled(int(batch[1].argmax()))
    assert third.logprob == pytest.approx(float(expected[2, third.token]))
    assert third.likeliest == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1), ("temperature", math.nan), ("temperature", math.inf), ("top_p", 0.0), ("top_p", 1.1),
        ("top_p", math.nan), ("top_k", -1), ("seed", 2**63), ("stop_strings", ("a", "")), ("stop_strings", ("a",) * 17),
        ("logprobs", 21), ("logprobs", -1),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(field: str, value: object) -> None:
    with pytest.raises(InputError, match=f"^{field} is "):
        SamplingParameters(**{field: value})  # type: ignore[arg-type]
