import pytest
import torch
from scipy import stats

from kernels.launch import LaunchConfig
from kernels.speculative import verify_drafts, verify_drafts_reference

MANY_ROWS = LaunchConfig({"tile_rows": 65536, "block": 8}, num_warps=8, num_stages=1)
"""So many rows a program that the interpreter gets through a million draws; a GPU takes the shipped form."""


def keys(rows: int, device: torch.device) -> list[torch.Tensor]:
    return [torch.randint(2**31, (rows,), device=device) for _ in range(3)]


def drawn(probabilities: torch.Tensor) -> torch.Tensor:
    """A token of each distribution in the last dimension."""
    flat = probabilities.flatten(0, -2)
    return torch.multinomial(flat, 1, replacement=True).view(probabilities.shape[:-1]).int()


@pytest.mark.parametrize("certain", [False, True])
@pytest.mark.parametrize(
    ("rows", "drafted", "vocabulary"), [(9, 4, 50), (1, 1, 1), (3, 2, 5000), (70, 3, 4), (5, 0, 9)]
)
def test_decides_as_the_reference(
    device: torch.device, rows: int, drafted: int, vocabulary: int, certain: bool
) -> None:
    target = torch.randn(rows, drafted + 1, vocabulary, device=device).softmax(-1)
    draft = (target[:, :drafted].log() + 0.7 * torch.randn(rows, drafted, vocabulary, device=device)).softmax(-1)
    drafts = drawn(draft)
    inputs = (drafts, None if certain else draft, target, *keys(rows, device))
    out, accepted = verify_drafts(*inputs)
    expected, expected_accepted = verify_drafts_reference(*inputs)
    assert torch.equal(out, expected)
    assert torch.equal(accepted, expected_accepted)


def test_rows_with_fewer_drafts(device: torch.device) -> None:
    target = torch.randn(64, 4, 16, device=device).softmax(-1)
    draft = target[:, :3].contiguous()
    drafts = drawn(draft)
    lengths = torch.arange(64, device=device) % 4
    drafts[torch.arange(3, device=device) >= lengths[:, None]] = -1
    inputs = (drafts, draft, target, *keys(64, device))
    out, accepted = verify_drafts(*inputs)
    assert torch.equal(accepted, lengths.int())  # drafts from the target's own distribution are all accepted
    assert torch.equal((out >= 0).sum(1), lengths + 1)
    assert torch.equal(out, verify_drafts_reference(*inputs)[0])


def test_impossible_tokens_are_neither_accepted_nor_drawn(device: torch.device) -> None:
    target = torch.zeros(500, 3, 8, device=device)
    target[..., 2:4] = 0.5
    draft = torch.full((500, 2, 8), 0.125, device=device)
    out, _ = verify_drafts(drawn(draft), draft, target, *keys(500, device))
    assert ((out == -1) | (out == 2) | (out == 3)).all()


def test_a_decision_does_not_depend_on_the_batch(device: torch.device) -> None:
    target, draft = torch.randn(20, 4, 64, device=device).softmax(-1), torch.randn(20, 3, 64, device=device).softmax(-1)
    inputs = (drawn(draft), draft, target, *keys(20, device))
    together = verify_drafts(*inputs)[0]
    assert torch.equal(verify_drafts(*(each[7:8].contiguous() for each in inputs))[0], together[7:8])


@pytest.mark.parametrize(
    ("rows", "drafted", "target_weights", "draft_weights"),
    [
        (600_000, 2, [0.35, 0.05, 0.2, 0.1, 0.02, 0.13, 0.15], [0.1, 0.3, 0.05, 0.2, 0.2, 0.1, 0.05]),
        (400_000, 4, [0.7, 0.3], [0.4, 0.6]),
        (700_000, 1, [0.2, 0.5, 0.3], [0.6, 0.1, 0.3]),
    ],
    ids=["seven tokens", "two tokens", "three tokens"],
)
def test_a_million_draws_keep_the_distribution_of_the_target(
    device: torch.device, rows: int, drafted: int, target_weights: list[float], draft_weights: list[float]
) -> None:
    generator = torch.Generator(device).manual_seed(1)
    target, draft = (torch.tensor(weights, device=device) for weights in (target_weights, draft_weights))
    vocabulary = len(target)
    drafts = torch.multinomial(draft.expand(drafted, -1), rows, replacement=True, generator=generator)
    inputs = (
        drafts.T.int().contiguous(),
        draft.expand(rows, drafted, -1).contiguous(),
        target.expand(rows, drafted + 1, -1).contiguous(),
        torch.full((rows,), 7, device=device),
        torch.arange(rows, device=device),
        torch.full((rows,), 31, device=device),
    )
    out, accepted = verify_drafts(*inputs, config=MANY_ROWS if device.type == "cpu" else None)
    expected, expected_accepted = verify_drafts_reference(*inputs)
    assert (out != expected).any(dim=1).sum() <= 20  # float32 decides otherwise where two scores all but tie
    assert (accepted != expected_accepted).sum() <= 20
    for tokens in (out, expected):
        assert (tokens >= 0).sum() >= 1_000_000
        for step in range(drafted + 1):
            decided = tokens[:, step][tokens[:, step] >= 0].cpu()
            counts = torch.bincount(decided, minlength=vocabulary)
            probable = (target.double() / target.double().sum()).cpu() * len(decided)
            assert stats.chisquare(counts.numpy(), probable.numpy()).pvalue > 1e-4
    for counts in (accepted, expected_accepted):
        rate = float(torch.minimum(target, draft).sum())
        generated = counts.double() + 1
        mean = (1 - rate ** (drafted + 1)) / (1 - rate)  # Leviathan et al., equation 1
        assert abs(float(generated.mean()) - mean) < 4 * float(generated.std()) / rows**0.5
