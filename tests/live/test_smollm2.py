"""SmolLM2-135M-Instruct from its GGUF file: right answers, and the same tokens whichever way they are computed."""

import pytest
import torch

from live.model.plain import plain_logits
from live.opening import OpenModel
from live.paging.kv_tensors import KVTensors
from live.paging.step_batch import SequenceInput
from live.runner import ModelRunner, make_runner

TEXT = 600


@pytest.fixture(scope="module")
def tokens(smollm2: OpenModel) -> list[int]:
    generator = torch.Generator().manual_seed(5)
    return [int(token) for token in torch.randint(100, 40_000, (TEXT,), generator=generator)]


@pytest.fixture(scope="module")
def runner(smollm2: OpenModel) -> ModelRunner:
    return make_runner(smollm2, blocks=100, block_size=16)


@pytest.fixture(scope="module")
def expected(runner: ModelRunner, tokens: list[int]) -> torch.Tensor:
    return plain_logits(runner.weights, tokens)


def ids(smollm2: OpenModel, *words: str) -> list[int]:
    assert smollm2.gguf is not None
    vocabulary = smollm2.gguf.metadata["tokenizer.ggml.tokens"]
    return [vocabulary.index(word) for word in words]


def test_the_capital_of_france(smollm2: OpenModel, runner: ModelRunner) -> None:
    prompt = ids(smollm2, "The", "Ġcapital", "Ġof", "ĠFrance", "Ġis")
    assert plain_logits(runner.weights, prompt)[-1].argmax() == ids(smollm2, "ĠParis")[0]


@pytest.mark.parametrize("chunk", [16, 512])
@pytest.mark.parametrize("block_size", [1, 16])
def test_logits_of_mixed_batches_equal_those_of_a_plain_pass(
    runner: ModelRunner, tokens: list[int], expected: torch.Tensor, chunk: int, block_size: int
) -> None:
    paged = with_block_size(runner, block_size)
    blocks = -(-TEXT // block_size)
    table, other = list(range(blocks + 5, 5, -1)), list(range(blocks + 6, blocks + 6 + -(-40 // block_size)))
    paged.run([SequenceInput(tokens[:30], 0, other, 0)])
    done, decoded, found, beside = 0, 30, [], []
    while done < TEXT:
        new = tokens[done : done + chunk]
        batch = [SequenceInput(new, done, table, len(new))]
        if decoded < 40:
            batch.append(SequenceInput([tokens[decoded]], decoded, other))
        logits = paged.run(batch)
        found.append(logits[: len(new)])
        beside += logits[len(new) :]
        done, decoded = done + len(new), decoded + 1
    assert (torch.cat(found) - expected).abs().max() < 1e-3
    assert (torch.stack(beside) - expected[30 : 30 + len(beside)]).abs().max() < 1e-3


def with_block_size(runner: ModelRunner, block_size: int) -> ModelRunner:
    """The same weights over other blocks."""
    kv = KVTensors(runner.config, 800 // block_size, block_size, torch.float32, runner.device)
    return ModelRunner(runner.weights, kv, runner.backend, 640)
