import pytest
import torch
from scipy import stats

from kernels.kept_tokens import kept_tokens
from kernels.launch import LaunchConfig
from kernels.sampling import sample, sample_reference
from kernels.token_probabilities import token_probabilities, token_probabilities_reference
from tests.kernels.closeness import FLOAT_TYPES, assert_close

CHOICES = [
    (0.0, 0, 1.0),
    (1.0, 0, 1.0),
    (0.7, 5, 1.0),
    (1.3, 0, 0.6),
    (1.0, 20, 0.9),
    (2.0, 1, 0.5),
    (0.5, 10**6, 0.01),
]
"""Temperature, top-k and top-p."""
SMALL = LaunchConfig({"race": 64, "settle": 128, "settle_warps": 2}, num_warps=4, num_stages=1)


def choices(rows: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Every one of ``CHOICES`` in turn."""
    temperatures, top_ks, top_ps = zip(*(CHOICES[row % len(CHOICES)] for row in range(rows)), strict=True)
    return (
        torch.tensor(temperatures, device=device),
        torch.tensor(top_ks, dtype=torch.int32, device=device),
        torch.tensor(top_ps, device=device),
    )


def keys(rows: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Seeds, requests, positions."""
    return tuple(torch.randint(2**31, (rows,), device=device) for _ in range(3))


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize(
    ("rows", "vocabulary", "config"), [(14, 500, SMALL), (14, 1, None), (14, 7, None), (7, 5000, None)]
)
def test_draws_the_token_of_the_reference(
    device: torch.device, dtype: torch.dtype, rows: int, vocabulary: int, config: LaunchConfig | None
) -> None:
    logits = (torch.randn(rows, vocabulary, device=device) * 3).to(dtype)
    drawn = choices(rows, device), keys(rows, device)
    out = sample(logits, *drawn[0], *drawn[1], config=config)
    assert torch.equal(out, sample_reference(logits, *drawn[0], *drawn[1]))


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize(("rows", "vocabulary"), [(28, 1000), (7, 1), (7, 9000)])
def test_probabilities_equal_the_reference(
    device: torch.device, dtype: torch.dtype, rows: int, vocabulary: int
) -> None:
    logits = (torch.randn(rows, vocabulary, device=device) * 3).to(dtype)
    out = token_probabilities(logits, *choices(rows, device))
    expected = token_probabilities_reference(logits, *choices(rows, device))
    assert torch.equal(out > 0, expected > 0)
    assert_close(out, expected, tolerance=1e-5)


def test_vocabularies_of_a_quarter_of_a_million(device: torch.device) -> None:
    logits = torch.randn(2, 256000, device=device)
    temperatures, top_ks, top_ps = torch.full((2,), 0.9), torch.tensor([0, 50]), torch.tensor([0.9, 0.95])
    chosen = temperatures.to(device), top_ks.to(device), top_ps.to(device)
    drawn = keys(2, device)
    assert torch.equal(sample(logits, *chosen, *drawn), sample_reference(logits, *chosen, *drawn))


def test_equal_logits_stand_or_fall_together(device: torch.device) -> None:
    logits = torch.randint(-3, 3, (35, 200), device=device).float()
    drawn = choices(35, device), keys(35, device)
    assert torch.equal(sample(logits, *drawn[0], *drawn[1]), sample_reference(logits, *drawn[0], *drawn[1]))
    out, expected = token_probabilities(logits, *drawn[0]), token_probabilities_reference(logits, *drawn[0])
    assert torch.equal(out > 0, expected > 0)


@pytest.mark.parametrize("low", [-torch.inf, -1e30])
def test_masked_tokens_are_never_drawn(device: torch.device, low: float) -> None:
    logits = torch.randn(35, 300, device=device)
    logits[:, 3:] = low
    chosen = choices(35, device)
    out = sample(logits, *chosen, *keys(35, device), config=SMALL)
    assert out.max() < 3
    probabilities = token_probabilities(logits, *chosen)
    assert_close(probabilities, token_probabilities_reference(logits, *chosen), tolerance=1e-5)
    assert not probabilities[:, 3:].any()


def test_what_is_kept_by_example() -> None:
    logits = torch.log(torch.tensor([[0.1, 0.4, 0.2, 0.2, 0.1]])).double()

    def kept(temperature: float, top_k: int, top_p: float) -> list[int]:
        mask, _ = kept_tokens(logits, torch.tensor([temperature]), torch.tensor([top_k]), torch.tensor([top_p]))
        return mask[0].nonzero().flatten().tolist()

    assert kept(1, 0, 1.0) == [0, 1, 2, 3, 4]
    assert kept(0, 0, 1.0) == [1]
    assert kept(1, 1, 1.0) == [1]
    assert kept(1, 2, 1.0) == [1, 2, 3]  # both tokens of the second place
    assert kept(1, 0, 0.39) == [1]
    assert kept(1, 0, 0.5) == [1, 2, 3]
    assert kept(1, 0, 0.81) == [0, 1, 2, 3, 4]
    assert kept(1, 3, 0.49) == [1]  # half of what top-k has left is the first token's
    assert kept(1, 3, 0.51) == [1, 2, 3]


def test_a_draw_does_not_depend_on_the_batch(device: torch.device) -> None:
    logits = torch.randn(14, 500, device=device)
    inputs = (logits, *choices(14, device), *keys(14, device))
    together = sample(*inputs)
    order = torch.randperm(14, device=device)
    assert torch.equal(sample(*(each[order] for each in inputs)), together[order])
    assert torch.equal(sample(*(each[3:4] for each in inputs)), together[3:4])
    assert not torch.equal(sample(*inputs[:-1], inputs[-1] + 1), together)


def test_rows_of_a_larger_tensor_and_no_rows(device: torch.device) -> None:
    wide = torch.randn(7, 640, device=device)
    drawn = choices(7, device), keys(7, device)
    out = sample(wide[:, :500], *drawn[0], *drawn[1])
    assert torch.equal(out, sample_reference(wide[:, :500], *drawn[0], *drawn[1]))
    none = sample(*(each[:0] for each in (wide, *drawn[0], *drawn[1])))
    assert none.shape == (0,)


@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (4, 1.0), (0, 0.7), (5, 0.8)])
def test_tokens_are_drawn_as_often_as_probable(top_k: int, top_p: float) -> None:
    draws = 100_000
    logits = torch.tensor([[0.3, -1.0, 2.0, 0.0, 1.1, -2.0, 0.9, 0.31]]).expand(draws, -1)
    chosen = torch.full((draws,), 0.8), torch.full((draws,), top_k), torch.full((draws,), top_p)
    position = torch.arange(draws)
    out = sample_reference(logits, *chosen, torch.full((draws,), 3), torch.full((draws,), 9), position)
    probabilities = token_probabilities_reference(logits[:1], *(each[:1] for each in chosen))[0].double()
    counts = torch.bincount(out, minlength=8)
    possible = probabilities > 0
    assert counts[~possible].sum() == 0
    expected = probabilities[possible] / probabilities.sum() * draws
    assert stats.chisquare(counts[possible].numpy(), expected.numpy()).pvalue > 1e-3
