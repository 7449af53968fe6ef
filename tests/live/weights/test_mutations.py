"""Damaged files end in a refusal of one sentence or in a model, never in anything else, and without taking memory."""

import random
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from safetensors.torch import save

from live.model.weights import load_weights
from live.opening import open_model
from live.weights.gguf_file import GgufFile
from live.weights.safetensors_file import SafetensorsFile
from simcore.core.errors import ServetwinError
from tests.live.weights.tiny_files import write_gguf

COUNT, WATCHED = 5000, 200
MOST_BYTES = 4_000_000
EXTREMES = [0, 1, 2, 7, 8, 9, 31, 2**16, 2**31 - 1, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
CHARACTERS = b'0123456789-.,:[]{}"enNaF\\\xff\x00'


def mutants(content: bytes, header: int, seed: int, count: int) -> Iterator[bytes]:
    """Copies with bytes changed, numbers made extreme, parts cut, doubled or swapped; mostly in the header."""
    chance = random.Random(seed)
    for _ in range(count):
        changed = bytearray(content)
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            at = chance.randrange(header if chance.random() < 0.9 else len(changed)) % max(1, len(changed))
            match chance.randrange(6):
                case 0:
                    changed[at : at + 1] = bytes([chance.randrange(256)])
                case 1:
                    changed[at : at + 1] = bytes([chance.choice(CHARACTERS)])
                case 2:
                    width = chance.choice((4, 8))
                    changed[at : at + width] = (chance.choice(EXTREMES) % 256**width).to_bytes(width, "little")
                case 3:
                    del changed[at : at + chance.choice((1, 8, 100, 10**6))]
                case 4:
                    changed[at:at] = changed[at : at + chance.choice((1, 8, 40))]
                case 5:
                    changed[at : at + 1] = bytes([changed[at] ^ (1 << chance.randrange(8))]) if changed else b""
        yield bytes(changed)


def outcome(path: Path, content: bytes, read: Callable[[Path], None]) -> str:
    path.unlink(missing_ok=True)  # to cut a file that is there off to nothing takes long on some file systems
    path.write_bytes(content)
    try:
        read(path)
    except ServetwinError as error:
        message = str(error)
        assert "\n" not in message
        assert len(message) < 1000
        return "refused"
    return "read"


def read_safetensors(path: Path) -> None:
    file = SafetensorsFile(path)
    for name in file.tensors:
        file.read(name)


def read_gguf(path: Path) -> None:
    file = GgufFile(path)
    for name in file.tensors:
        file.read(name)


def read_model(path: Path) -> None:
    model = open_model(path)
    load_weights(model.config, model.source, torch.float32, torch.device("cpu"))


def outcomes(path: Path, content: bytes, header: int, read: Callable[[Path], None], count: int = COUNT) -> list[str]:
    """What becomes of so many mutants; memory is watched while the first are read, as that is slow."""
    found = []
    tracemalloc.start(1)
    for number, mutant in enumerate(mutants(content, header, seed=1, count=count)):
        if number == WATCHED:
            assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
            tracemalloc.stop()
        found.append(outcome(path, mutant, read))
    return found


def test_damaged_safetensors(tmp_path: Path) -> None:
    stored = {"a.weight": torch.randn(4, 8), "b": torch.randn(6).half(), "c": torch.zeros(0, 3)}
    content = save(stored, {"format": "pt"})
    header = 8 + int.from_bytes(content[:8], "little")
    found = outcomes(tmp_path / "a.safetensors", content, header, read_safetensors)
    assert 0.02 < found.count("read") / COUNT < 0.9


def test_damaged_gguf(tmp_path: Path) -> None:
    content = write_gguf(tmp_path / "whole.gguf").read_bytes()
    header = content.rindex(b"blk.1.ffn_down") + 60
    found = outcomes(tmp_path / "a.gguf", content, header, read_gguf)
    assert 0.02 < found.count("read") / COUNT < 0.9


def test_models_of_damaged_gguf(tmp_path: Path) -> None:
    content = write_gguf(tmp_path / "whole.gguf").read_bytes()
    header = content.rindex(b"blk.1.ffn_down") + 60
    found = outcomes(tmp_path / "a.gguf", content, header, read_model, count=400)
    assert 0.02 < found.count("read") / 400 < 0.9
