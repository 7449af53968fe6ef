import struct
from pathlib import Path

import gguf
import pytest
import torch

from live.model.weights import DecoderWeights, load_weights
from live.opening import open_model
from live.weights.gguf_file import GgufFile
from live.weights.gguf_weights import in_halves
from simcore.core.errors import FileError
from tests.live.weights.tiny_files import write_gguf


def text(content: bytes) -> bytes:
    return struct.pack("<Q", len(content)) + content


def file_of(
    entries: list[bytes], tensors: list[bytes], data: bytes = b"", counts: tuple[int, int] | None = None
) -> bytes:
    header = struct.pack("<4sIQQ", b"GGUF", 3, *(counts or (len(tensors), len(entries))))
    content = header + b"".join(entries) + b"".join(tensors)
    return content + bytes(-len(content) % 32) + data


def tensor(name: bytes = b"t", extents: tuple[int, ...] = (4,), kind: int = 0, start: int = 0) -> bytes:
    row = text(name) + struct.pack("<I", len(extents)) + struct.pack(f"<{len(extents)}Q", *extents)
    return row + struct.pack("<IQ", kind, start)


def entry(key: bytes, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


HUGE = 2**63 - 1
HOSTILE = {
    "empty": (b"", "is empty"),
    "another kind": (b"GGML" + bytes(40), "does not begin with GGUF"),
    "version 1": (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "its version is 1"),
    "cut": (b"GGUF\3\0", "4 bytes are to follow byte 4, but 2 are left"),
    "many tensors": (file_of([], [], counts=(HUGE, 0)), "do not fit its size"),
    "many entries": (file_of([], [], counts=(0, HUGE)), "do not fit its size"),
    "long key": (file_of([struct.pack("<Q", 2**40) + b"x" * 30], []), "expected at most 1024"),
    "long text": (file_of([entry(b"a", 8, struct.pack("<Q", HUGE))], []), "are to follow byte"),
    "long array": (file_of([entry(b"a", 9, struct.pack("<IQ", 0, HUGE))], []), "does not fit its size"),
    "long array of texts": (file_of([entry(b"a", 9, struct.pack("<IQ", 8, 100))], []), "does not fit its size"),
    "array of arrays": (file_of([entry(b"a", 9, struct.pack("<IQ", 9, 1) + bytes(40))], []), "values of the type 9"),
    "unknown value": (file_of([entry(b"a", 77, bytes(8))], []), "unknown type 77"),
    "truth of 2": (file_of([entry(b"a", 7, b"\2")], []), "truth value"),
    "key twice": (file_of([entry(b"a", 0, b"\0")] * 2, []), "'a' is there twice"),
    "not UTF-8": (file_of([entry(b"\xff", 0, b"\0")], []), "not UTF-8"),
    "alignment": (file_of([entry(b"general.alignment", 4, struct.pack("<I", 3))], []), "expected a power of two"),
    "alignment of 0": (file_of([entry(b"general.alignment", 4, struct.pack("<I", 0))], []), "expected a power of two"),
    "no dimension": (file_of([], [tensor(extents=())]), "0 dimensions"),
    "many dimensions": (file_of([], [tensor(extents=(1,) * 9)]), "9 dimensions"),
    "extent of 0": (file_of([], [tensor(extents=(4, 0))]), "extents"),
    "product overflows": (file_of([], [tensor(extents=(2**62, 2**62))], bytes(64)), "reaches beyond its end"),
    "part of a block": (file_of([], [tensor(extents=(33,), kind=8)], bytes(64)), "expected blocks of 32"),
    "unknown tensor": (file_of([], [tensor(kind=4)], bytes(64)), "unknown type 4"),
    "beyond the end": (file_of([], [tensor(start=2**40)], bytes(64)), "reaches beyond its end"),
    "not aligned": (file_of([], [tensor(start=4)], bytes(64)), "not aligned"),
    "tensor twice": (file_of([], [tensor(), tensor(start=32)], bytes(64)), "'t' is there twice"),
    "overlap": (file_of([], [tensor(b"a", (12,)), tensor(b"b", start=32)], bytes(96)), "'a' and 'b' overlap"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    content, problem = HOSTILE[name]
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(FileError, match=problem) as refused:
        GgufFile(path)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


KINDS = [gguf.GGMLQuantizationType[name] for name in ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1")]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_contents_are_those_that_the_library_reads(kind: gguf.GGMLQuantizationType, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "model.gguf", kind)
    ours, theirs = GgufFile(path), gguf.GGUFReader(path)
    for field in theirs.fields.values():
        if not field.name.startswith("GGUF."):
            assert ours.metadata[field.name] == field.contents()
    assert list(ours.tensors) == [tensor.name for tensor in theirs.tensors]
    for stored in theirs.tensors:
        expected = gguf.quants.dequantize(stored.data, stored.tensor_type)
        assert torch.equal(ours.read(stored.name), torch.from_numpy(expected.copy()))


def loaded(path: Path) -> DecoderWeights:
    model = open_model(path)
    return load_weights(model.config, model.source, torch.float32, torch.device("cpu"))


def test_a_model_that_lacks_something_is_refused(tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "model.gguf").read_bytes()
    for old, new, problem in (
        (b"blk.1.ffn_up.weight", b"blk.1.ffn_yp.weight", "no tensor 'blk.1.ffn_up.weight'"),
        (b"llama.attention.head_count\x04", b"llama.attention.head_cuunt\x04", "llama.attention.head_count is not"),
        (b"token_embd", b"token_embb", "no matrix 'token_embd.weight'"),
        (struct.pack("<f", 1e-5), struct.pack("<f", float("nan")), "rms_norm_eps is nan"),
        (struct.pack("<f", 10000.0), struct.pack("<f", -1.0), "rope_theta is -1.0"),
    ):
        assert whole.count(old) == 1
        path = tmp_path / "changed.gguf"
        path.write_bytes(whole.replace(old, new))
        with pytest.raises(FileError, match=problem):
            loaded(path)


def test_rows_of_queries_are_put_back_in_halves() -> None:
    """llama.cpp's converter takes rows 0, 4, 1, 5, 2, 6, 3, 7 of a head of 8."""
    rows = torch.arange(16)[:, None].float()
    stored = rows.reshape(2, 2, 4, 1).transpose(1, 2).reshape(16, 1)
    assert stored[:8, 0].tolist() == [0, 4, 1, 5, 2, 6, 3, 7]
    assert torch.equal(in_halves(stored, 2), rows)
