"""A checkpoint folder: one safetensors file, or several with an index."""

from pathlib import Path

import torch

from live.weights.safetensors_file import SafetensorsFile
from live.weights.source import WeightSource
from simcore.core.errors import FileError
from simcore.core.files import opening, read_json

_INDEX = "model.safetensors.index.json"
_FLOATS = ("F16", "BF16", "F32", "F64")
_PICKLED = (".bin", ".pt", ".pth", ".pkl", ".ckpt")


class SafetensorsFolder(WeightSource):
    """The weights of a Hugging Face checkpoint folder; all headers are checked when it is opened.

    Raises ``FileError`` for a folder without safetensors files, a broken one, or an index that does not fit them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        index = folder / _INDEX
        with opening(folder, "folder"):
            names = sorted(path.name for path in folder.iterdir())
        shards = self._indexed(index) if _INDEX in names else [name for name in names if name.endswith(".safetensors")]
        if not shards:
            pickled = next((name for name in names if name.endswith(_PICKLED)), None)
            hint = f", not {pickled}: pickled weights are never read" if pickled else ""
            raise FileError(folder, f"holds no weights, expected files that end in .safetensors{hint}")
        self._files: dict[str, SafetensorsFile] = {}
        for shard in shards:
            file = SafetensorsFile(folder / shard)
            for name in file.tensors:
                if name in self._files:
                    raise FileError(file.path, f"has the tensor {name!r}, which {self._files[name].path.name} has too")
                self._files[name] = file

    def _indexed(self, index: Path) -> list[str]:
        """The names of the files that an index lists: files beside it, and nothing else."""
        content = read_json(index)
        listed = content.get("weight_map") if isinstance(content, dict) else None
        if not isinstance(listed, dict) or not all(isinstance(name, str) for name in listed.values()):
            raise FileError(index, "expected a weight_map from tensors to files")
        shards = sorted(set(listed.values()))
        for shard in shards:
            if not shard.endswith(".safetensors") or "/" in shard or "\\" in shard or "\0" in shard:
                raise FileError(index, f"lists {shard[:80]!r}, expected the name of a .safetensors file beside it")
        return shards

    def has(self, name: str) -> bool:
        """Whether any file has it."""
        return name in self._files

    def tensor(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        """As stored."""
        file = self._files.get(name)
        if file is None:
            raise FileError(self.folder, f"has no tensor {name!r}")
        stored = file.tensors[name]
        if stored.shape != shape:
            raise FileError(file.path, f"tensor {name!r} is {list(stored.shape)}, expected {list(shape)}")
        if stored.dtype not in _FLOATS:
            raise FileError(file.path, f"tensor {name!r} has the dtype {stored.dtype}, expected {', '.join(_FLOATS)}")
        return file.read(name)
