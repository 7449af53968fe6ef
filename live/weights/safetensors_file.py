"""safetensors files, whose headers are checked in full before the library sees them.

The format: eight bytes with the length of a JSON header, the header, then the data of all tensors without gaps.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from simcore.core.errors import FileError
from simcore.core.files import json_problem, opening

_LONGEST_HEADER_BYTES = 100_000_000
_MOST_DIMENSIONS = 8
_ITEM_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1,
    "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A row of the header; ``start`` and ``stop`` are bytes after it."""

    shape: tuple[int, ...]
    dtype: str
    start: int
    stop: int


class SafetensorsFile:
    """A safetensors file whose header has been checked: ``tensors`` by name.

    Raises ``FileError`` for a header that is none, or that does not describe the data which follow it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with opening(path, "safetensors file"), path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            self.tensors: Mapping[str, StoredTensor] = _Header(path).read(file.read(8), file, size)

    def read(self, name: str) -> torch.Tensor:
        """A tensor as it is stored."""
        try:
            with safe_open(self.path, framework="pt") as file:
                tensor: torch.Tensor = file.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise FileError(self.path, f"tensor {name!r} cannot be read ({error})") from None
        return tensor


class _Header:
    def __init__(self, path: Path) -> None:
        self.path = path

    def fail(self, problem: str) -> FileError:
        return FileError(self.path, f"not a valid safetensors file ({problem})")

    def read(self, prefix: bytes, file: Any, size: int) -> dict[str, StoredTensor]:
        length = int.from_bytes(prefix, "little")
        if len(prefix) < 8 or length > size - 8:
            raise self.fail(f"a header of {length} bytes does not fit its {size} bytes")
        if length > _LONGEST_HEADER_BYTES:
            raise self.fail(f"its header is {length} bytes long, expected at most {_LONGEST_HEADER_BYTES}")
        header = self.parse(file.read(length))
        metadata = header.pop("__metadata__", {})
        if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
            raise self.fail("its __metadata__ is no map of texts")
        tensors = {name: self.tensor(name, row) for name, row in header.items()}
        self.check_layout(tensors, size - 8 - length)
        return tensors

    def parse(self, content: bytes) -> dict[str, Any]:
        try:
            header = json.loads(content.decode("utf-8"), object_pairs_hook=self.without_repetition)
        except UnicodeDecodeError:
            raise self.fail("its header is not UTF-8 text") from None
        except (ValueError, RecursionError) as error:
            raise self.fail(f"its header is not valid JSON: {json_problem(error)}") from None
        if not isinstance(header, dict):
            raise self.fail("its header is no JSON object")
        return header

    def without_repetition(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) < len(pairs):
            raise self.fail("a key of its header is there twice")
        return entries

    def tensor(self, name: str, row: Any) -> StoredTensor:
        if not isinstance(row, dict) or set(row) != {"dtype", "shape", "data_offsets"}:
            raise self.fail(f"the tensor {name!r} does not state dtype, shape and data_offsets, and these alone")
        dtype, shape, offsets = row["dtype"], row["shape"], row["data_offsets"]
        if not isinstance(dtype, str) or dtype not in _ITEM_BYTES:
            raise self.fail(f"the tensor {name!r} has the unknown dtype {str(dtype)[:40]!r}")
        if not _are_sizes(shape) or len(shape) > _MOST_DIMENSIONS:
            raise self.fail(f"the tensor {name!r} has no shape of at most {_MOST_DIMENSIONS} sizes")
        if not _are_sizes(offsets) or len(offsets) != 2:
            raise self.fail(f"the tensor {name!r} has no two data_offsets")
        start, stop = offsets
        expected = math.prod(shape) * _ITEM_BYTES[dtype]
        if stop - start != expected:
            raise self.fail(f"the tensor {name!r} needs {expected} bytes, but its offsets are {start} and {stop}")
        return StoredTensor(tuple(shape), dtype, start, stop)

    def check_layout(self, tensors: Mapping[str, StoredTensor], data_bytes: int) -> None:
        """Tensors follow each other without gap or overlap, to the end of the file."""
        end = 0
        for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].stop)):
            if tensor.start != end:
                raise self.fail(f"the tensor {name!r} begins at byte {tensor.start} of the data, expected {end}")
            end = tensor.stop
        if end != data_bytes:
            raise self.fail(f"its tensors end at byte {end} of {data_bytes} bytes of data")


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and 0 <= value < 2**63 for value in values)
