"""Every family against its implementation in transformers: the plain pass, and steps over paged keys and values."""

from pathlib import Path

import pytest
import torch

from live.model.plain import plain_logits
from live.opening import open_model
from live.paging.step_batch import SequenceInput
from live.runner import make_runner
from tests.live.tiny_models import FAMILIES, logits, save

TOKENS = [int(token) for token in torch.randint(0, 300, (60,), generator=torch.Generator().manual_seed(3))]


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_equal_those_of_transformers(name: str, checkpoint: Path) -> None:
    expected = logits(save(name, checkpoint), TOKENS)
    runner = make_runner(open_model(checkpoint), blocks=40, block_size=4)
    assert expected.std() > 0.3
    torch.testing.assert_close(plain_logits(runner.weights, TOKENS), expected, rtol=1e-4, atol=1e-3)

    table = [*range(30, 15, -1)]
    found = [runner.run([SequenceInput(TOKENS[:21], 0, table, 21)])]
    found.append(runner.run([SequenceInput(TOKENS[21:50], 21, table, 29)]))
    found += [runner.run([SequenceInput([TOKENS[at]], at, table)]) for at in range(50, 60)]
    torch.testing.assert_close(torch.cat(found), expected, rtol=1e-4, atol=1e-3)


def test_shards_hold_the_same_model(checkpoint: Path) -> None:
    expected = logits(save("qwen3", checkpoint, shard_size="100KB"), TOKENS)
    assert len(list(checkpoint.glob("*.safetensors"))) > 2
    runner = make_runner(open_model(checkpoint), blocks=1)
    torch.testing.assert_close(plain_logits(runner.weights, TOKENS), expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_stay_near_singles(dtype: torch.dtype, checkpoint: Path) -> None:
    expected = logits(save("qwen3", checkpoint), TOKENS)
    runner = make_runner(open_model(checkpoint), blocks=20, block_size=4, dtype=dtype)
    found = runner.run([SequenceInput(TOKENS, 0, range(15), 60)])
    share = (found - expected).norm() / expected.norm()
    assert share < (0.03 if dtype is torch.bfloat16 else 0.005)
