"""The project's kernels against the plain pass, at toy sizes."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from live.graphs import GraphedDecoder
from live.model.plain import plain_logits
from live.opening import random_model
from live.paging.step_batch import SequenceInput
from live.paging.upload import Upload
from live.runner import ModelRunner, make_runner
from simcore.core.errors import InputError
from tests.live.tiny_models import save_config

SHAPE = {"hidden_size": 128, "head_dim": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96}
TOKENS = [int(token) for token in torch.randint(0, 96, (45,), generator=torch.Generator().manual_seed(3))]


def runner_of(name: str, folder: Path, device: str, **options: object) -> ModelRunner:
    save_config(name, folder, num_hidden_layers=2, **SHAPE)
    dtype = options.get("dtype", torch.float32)
    assert isinstance(dtype, torch.dtype)
    model = random_model(folder, seed=1, dtype=dtype, device=torch.device(device))
    # Weights of 0.02 would make attention and experts hardly matter.
    runner = make_runner(model, blocks=12, block_size=16, device=device, backend="triton", **options)  # type: ignore[arg-type]
    for layer in runner.weights.layers:
        for linear in (layer.qkv, layer.output):
            weight = getattr(linear, "weight", None)
            if weight is not None:
                weight *= 5
    return runner


def steps(runner: ModelRunner) -> tuple[torch.Tensor, torch.Tensor]:
    """A prompt in two chunks beside decodes of another; and that other."""
    table, other = [7, 2, 9], [3, 11]
    first = runner.run([SequenceInput(TOKENS[:20], 0, table, 20), SequenceInput(TOKENS[:17], 0, other, 17)])
    second = runner.run([SequenceInput(TOKENS[20:44], 20, table, 24), SequenceInput([TOKENS[17]], 17, other)])
    third = runner.run([SequenceInput([TOKENS[44]], 44, table), SequenceInput([TOKENS[18]], 18, other)])
    return torch.cat([first[:20], second[:24], third[:1]]), torch.cat([first[20:], second[24:], third[1:]])


@pytest.mark.parametrize("name", ["llama", "qwen2", "qwen3", "mistral", "mixtral", "qwen3-moe"])
def test_logits_equal_those_of_a_plain_pass(name: str, tmp_path: Path, device: str) -> None:
    runner = runner_of(name, tmp_path, device)
    expected = plain_logits(runner.weights, TOKENS)
    assert expected.std() > 0.05
    long, short = steps(runner)
    torch.testing.assert_close(long, expected, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(short, expected[:19], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("weight_format", "error"), [("w8a8", 0.05), ("fp8", 0.1), ("w4a16", 0.02)])
def test_quantised_weights(weight_format: str, error: float, tmp_path: Path, device: str) -> None:
    """The plain pass has the same weights but whole activations, of which fp8 keeps three bits after the first."""
    runner = runner_of("llama", tmp_path, device, dtype=torch.float16, weight_format=weight_format)
    expected = plain_logits(runner.weights, TOKENS[:19])
    _, short = steps(runner)
    assert (short - expected).norm() / expected.norm() < error


def test_graphs_of_decodes_equal_steps(tmp_path: Path, device: str) -> None:
    """What a capture records is done again at once, which the interpreter allows, over what the buffers then hold."""
    runner = runner_of("qwen3", tmp_path, device)
    tables = [[1], [2], [3]]
    for table in tables:
        runner.run([SequenceInput(TOKENS[:9], 0, table)])
    captures = []

    def capture(run: Callable[[], torch.Tensor]) -> tuple[Callable[[], object], torch.Tensor]:
        captures.append(run)
        result = run()

        @torch.inference_mode()
        def replay() -> None:
            result.copy_(run())

        return replay, result

    decodes = [[SequenceInput([token], 9, table) for table in tables] for token in (5, 6)]
    expected = [runner.run(batch) for batch in decodes]
    runner._graphs = GraphedDecoder(runner._decoder, runner.kv, Upload(runner.device), capture)
    for batch, logits in zip(decodes, expected, strict=True):
        torch.testing.assert_close(runner.run(batch), logits)
    assert len(captures) == 1


def test_what_kernels_cannot_do_is_refused(tmp_path: Path) -> None:
    save_config("llama", tmp_path, **SHAPE)
    model = random_model(tmp_path, 1, torch.float32, torch.device("cpu"))
    with pytest.raises(InputError, match="block_size is 1, expected one of 16, 32, 64, 128 for the kernels"):
        make_runner(model, blocks=10, block_size=1, backend="triton")
    with pytest.raises(InputError, match="dtype is 'float32', expected float16 or bfloat16 with w8a8 weights"):
        make_runner(model, blocks=10, weight_format="w8a8")
