from pathlib import Path

import pytest
import torch

from live.opening import random_model
from live.paging.step_batch import SequenceInput
from live.runner import ModelRunner, make_runner
from simcore.core.errors import CapacityError, FileError, UnknownNameError
from tests.live.tiny_models import save_config


def runner_of(folder: Path, **options: object) -> ModelRunner:
    save_config("llama", folder)
    model = random_model(folder, seed=1, dtype=torch.float32, device=torch.device("cpu"))
    return make_runner(model, **{"blocks": 8, "block_size": 4, **options})  # type: ignore[arg-type]


def test_random_weights_depend_on_the_seed_alone(tmp_path: Path) -> None:
    first, again = runner_of(tmp_path), runner_of(tmp_path / "again")
    assert torch.equal(first.weights.layers[2].qkv.dense()[0], again.weights.layers[2].qkv.dense()[0])
    other = random_model(tmp_path, seed=2, dtype=torch.float32, device=torch.device("cpu"))
    assert not torch.equal(first.weights.embedding, make_runner(other, blocks=1).weights.embedding)
    assert first.weights.layers[0].qkv.dense()[0].std() == pytest.approx(0.02, rel=0.05)


def test_copied_and_swapped_blocks_serve_as_the_ones_they_were(tmp_path: Path) -> None:
    runner = runner_of(tmp_path, host_blocks=2)
    runner.run([SequenceInput([5, 6, 7, 8, 9], 0, [3, 1], 0)])
    expected = runner.run([SequenceInput([4], 5, [3, 1])])
    runner.kv.copy([1], [6])
    torch.testing.assert_close(runner.run([SequenceInput([4], 5, [3, 6])]), expected)
    runner.kv.swap_out([3, 6], [1, 0])
    runner.kv.keys.zero_()
    runner.kv.values.zero_()
    runner.kv.swap_in([1, 0], [0, 7])
    torch.testing.assert_close(runner.run([SequenceInput([4], 5, [0, 7])]), expected)


def test_rows_come_in_the_order_of_the_sequences(tmp_path: Path) -> None:
    runner = runner_of(tmp_path)
    chunk, decode, silent = (
        SequenceInput([1, 2, 3], 0, [0], 2),
        SequenceInput([7], 0, [1]),
        SequenceInput([4], 0, [2], 0),
    )
    together = runner.run([chunk, silent, decode])
    assert together.dtype == torch.float32
    torch.testing.assert_close(together, torch.cat([runner.run([chunk]), runner.run([decode])]))
    assert runner.run([silent]).shape == (0, 300)


def test_threads_are_set_if_asked_for(tmp_path: Path) -> None:
    runner_of(tmp_path, threads=2)
    assert torch.get_num_threads() == 2
    runner_of(tmp_path)
    assert torch.get_num_threads() == 2


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    runner = runner_of(tmp_path)
    with pytest.raises(ValueError, match="a context of 33 tokens is beyond 32"):
        runner.run([SequenceInput([1], 32, range(9))])
    with pytest.raises(CapacityError, match=r"does not suffice for 1000000000000 blocks .*; lower num_gpu_blocks"):
        runner_of(tmp_path, blocks=10**12)
    with pytest.raises(UnknownNameError, match=r"backend is 'tritn', expected one of torch, triton\. Did you"):
        runner_of(tmp_path, backend="tritn")
    with pytest.raises(FileError, match="no such file"):
        random_model(tmp_path / "nothing", 1, torch.float32, torch.device("cpu"))
