"""SmolLM2-135M-Instruct from its GGUF file: right answers, and the same tokens whichever way they are computed."""

import pytest
import torch

from live.model.plain import plain_logits
from live.opening import OpenModel
from live.paging.kv_tensors import KVTensors
from live.paging.step_batch import SequenceInput
from live.runner import ModelRunner, make_runner
from live.sampling.parameters import SamplingParameters
from live.sampling.sampler import Row, sample_rows
from live.text.tokenizer import tokenizer_of_gguf
from tests.live.engine.prompts import PROMPTS

TEXT = 540


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


NEW_TOKENS = 8


EVERY = len(PROMPTS)


@pytest.mark.parametrize(
    ("block_size", "count"),
    [(1, 5), pytest.param(1, EVERY, marks=pytest.mark.long), pytest.param(16, EVERY, marks=pytest.mark.long)],
)
def test_greedy_tokens_of_real_prompts_equal_those_of_a_plain_pass(
    smollm2: OpenModel, runner: ModelRunner, block_size: int, count: int
) -> None:
    """Prompts at once: prefilled in chunks of 16 while earlier ones decode already.

    The plain pass over prompt and output must prefer, after each token, the one that came next.
    """
    assert smollm2.gguf is not None
    tokenizer = tokenizer_of_gguf(smollm2.gguf)
    paged = with_block_size(runner, block_size, tokens=1400)
    outputs = greedy(paged, [tokenizer.encode(prompt) for prompt in PROMPTS[:count]])
    for prompt, tokens in zip(PROMPTS[:count], outputs, strict=True):
        start = len(tokenizer.encode(prompt))
        expected = plain_logits(runner.weights, [*tokenizer.encode(prompt), *tokens])[start - 1 : -1].argmax(1)
        assert tokens == expected.tolist()
    assert tokenizer.decode(outputs[0]).startswith(" Paris")


def greedy(runner: ModelRunner, prompts: list[list[int]]) -> list[list[int]]:
    """Each step takes 16 tokens of one prompt, and a token of every output that has begun."""
    per_sequence = -(-60 // runner.kv.block_size)
    tables = [range(index * per_sequence, (index + 1) * per_sequence) for index in range(len(prompts))]
    outputs: list[list[int]] = [[] for _ in prompts]
    waiting = [(index, at) for index, prompt in enumerate(prompts) for at in range(0, len(prompt), 16)]
    parameters = Row(SamplingParameters(temperature=0.0), 0)
    while waiting or any(len(output) < NEW_TOKENS for output in outputs):
        batch, owners = [], []
        for index, output in enumerate(outputs):
            if 0 < len(output) < NEW_TOKENS:
                position = len(prompts[index]) + len(output) - 1
                batch.append(SequenceInput(output[-1:], position, tables[index]))
                owners.append(index)
        if waiting:
            index, at = waiting.pop(0)
            chunk = prompts[index][at : at + 16]
            ends = at + len(chunk) == len(prompts[index])
            batch.append(SequenceInput(chunk, at, tables[index], int(ends)))
            owners += [index] if ends else []
        sampled = sample_rows(runner.run(batch), [parameters] * len(owners))
        for index, token in zip(owners, sampled, strict=True):
            outputs[index].append(token.token)
    return outputs


@pytest.mark.parametrize(
    ("chunk", "block_size"),
    [(16, 1), (512, 16), *(pytest.param(*sizes, marks=pytest.mark.long) for sizes in ((16, 16), (512, 1)))],
)
def test_logits_of_mixed_batches_equal_those_of_a_plain_pass(
    runner: ModelRunner, tokens: list[int], expected: torch.Tensor, chunk: int, block_size: int
) -> None:
    paged = with_block_size(runner, block_size)
    text = min(TEXT, 12 * chunk)
    blocks = -(-text // block_size)
    table, other = list(range(blocks + 5, 5, -1)), list(range(blocks + 6, blocks + 6 + -(-40 // block_size)))
    paged.run([SequenceInput(tokens[:30], 0, other, 0)])
    done, decoded, found, beside = 0, 30, [], []
    while done < text:
        new = tokens[done : min(done + chunk, text)]
        batch = [SequenceInput(new, done, table, len(new))]
        if decoded < 40:
            batch.append(SequenceInput([tokens[decoded]], decoded, other))
        logits = paged.run(batch)
        found.append(logits[: len(new)])
        beside += logits[len(new) :]
        done, decoded = done + len(new), decoded + 1
    assert (torch.cat(found) - expected[:text]).abs().max() < 1e-3
    assert (torch.stack(beside) - expected[30 : 30 + len(beside)]).abs().max() < 1e-3


def with_block_size(runner: ModelRunner, block_size: int, tokens: int = 800) -> ModelRunner:
    """The same weights over other blocks."""
    kv = KVTensors(runner.config, tokens // block_size, block_size, torch.float32, runner.device)
    return ModelRunner(runner.weights, kv, runner.backend, 640)
