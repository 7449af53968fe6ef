import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from live.weights.folder import SafetensorsFolder
from live.weights.safetensors_file import SafetensorsFile
from simcore.core.errors import FileError
from tests.live.weights.tiny_files import safetensors_bytes


def row(start: int, stop: int, shape: object = None, dtype: object = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": [(stop - start) // 4] if shape is None else shape, "data_offsets": [start, stop]}


HOSTILE = {
    "empty": (b"", "a header of 0 bytes does not fit its 0 bytes"),
    "short": (b"abc", "does not fit its 3 bytes"),
    "long header": (safetensors_bytes({}, length=10**15), "does not fit"),
    "header of zeros": (bytes(64), "not valid JSON"),
    "no object": (safetensors_bytes([1]), "no JSON object"),
    "nested": (safetensors_bytes(b"[" * 100_000), "nested too deeply"),
    "huge number": (safetensors_bytes(b'{"a": ' + b"9" * 10_000 + b"}"), "beyond all bounds"),
    "not UTF-8": (safetensors_bytes(b'{"\xff": 1}'), "not UTF-8"),
    "twice": (safetensors_bytes(b'{"a": 1, "a": 2}'), "there twice"),
    "lies on size": (safetensors_bytes({"a": row(0, 8, [3])}, bytes(8)), "needs 12 bytes"),
    "overlap": (safetensors_bytes({"a": row(0, 8), "b": row(4, 12)}, bytes(12)), "begins at byte 4 of the data"),
    "gap": (safetensors_bytes({"a": row(0, 4), "b": row(8, 12)}, bytes(12)), "expected 4"),
    "cut": (safetensors_bytes({"a": row(0, 8)}, bytes(4)), "end at byte 8 of 4"),
    "trailing": (safetensors_bytes({"a": row(0, 8)}, bytes(9)), "end at byte 8 of 9"),
    "negative": (safetensors_bytes({"a": row(0, 8, [-2])}, bytes(8)), "no shape"),
    "not a number": (safetensors_bytes(b'{"a": {"dtype": "F32", "shape": [NaN], "data_offsets": [0, 4]}}'), "no shape"),
    "truth for a size": (safetensors_bytes({"a": row(0, 4, [True])}, bytes(4)), "no shape"),
    "product overflows": (safetensors_bytes({"a": row(0, 8, [2**62, 2**62])}, bytes(8)), "needs"),
    "many dimensions": (safetensors_bytes({"a": row(0, 4, [1] * 10_000)}, bytes(4)), "no shape"),
    "unknown dtype": (safetensors_bytes({"a": row(0, 8, [2], "F31")}, bytes(8)), "unknown dtype"),
    "dtype of lists": (safetensors_bytes({"a": row(0, 8, [2], [])}, bytes(8)), "unknown dtype"),
    "more keys": (safetensors_bytes({"a": row(0, 8) | {"code": "x"}}, bytes(8)), "these alone"),
    "metadata": (safetensors_bytes({"__metadata__": {"a": 1}}), "no map of texts"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    content, problem = HOSTILE[name]
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(FileError, match=problem) as refused:
        SafetensorsFile(path)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


def test_tensors_are_read_as_stored(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    stored = {"a": torch.randn(3, 5), "b": torch.randn(7).bfloat16(), "none": torch.empty(0, 4)}
    save_file(stored, path, {"format": "pt"})
    file = SafetensorsFile(path)
    assert set(file.tensors) == set(stored)
    for name, tensor in stored.items():
        assert torch.equal(file.read(name), tensor)
        assert file.read(name).dtype == tensor.dtype


def test_a_folder_of_pickles_is_refused(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(1)}, tmp_path / "pytorch_model.bin")
    with pytest.raises(FileError, match=r"pytorch_model\.bin: pickled weights are never read"):
        SafetensorsFolder(tmp_path)


@pytest.mark.parametrize("shard", ["../secret.safetensors", "/etc/passwd", "a/b.safetensors", "model.bin", ""])
def test_an_index_cannot_lead_out_of_its_folder(shard: str, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(f'{{"weight_map": {{"a": "{shard}"}}}}')
    with pytest.raises(FileError, match=r"expected the name of a \.safetensors file beside it"):
        SafetensorsFolder(tmp_path)


def test_what_is_missing_or_has_another_shape_is_named(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(2, 3), "b": torch.zeros(2, dtype=torch.int64)}, tmp_path / "model.safetensors")
    folder = SafetensorsFolder(tmp_path)
    with pytest.raises(FileError, match="no tensor 'c'"):
        folder.tensor("c", (1,))
    with pytest.raises(FileError, match=r"tensor 'a' is \[2, 3\], expected \[3, 2\]"):
        folder.tensor("a", (3, 2))
    with pytest.raises(FileError, match="'b' has the dtype I64, expected F16, BF16"):
        folder.tensor("b", (2,))
    save_file({"a": torch.zeros(1)}, tmp_path / "more.safetensors")
    with pytest.raises(FileError, match=r"which model\.safetensors has too"):
        SafetensorsFolder(tmp_path)


def test_a_file_without_permission_or_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        SafetensorsFile(tmp_path / "model.safetensors")
    os.mkdir(tmp_path / "folder.safetensors")
    with pytest.raises(FileError, match="is a folder"):
        SafetensorsFile(tmp_path / "folder.safetensors")
