"""GGUF files, read strictly: nothing that a header claims is believed before the file's size bears it out.

The format is that of ggml's docs/gguf.md, versions 2 and 3, little-endian: metadata, then a table of tensors, then
their data. Numbers are dequantised by the ``gguf`` package.
"""

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

from simcore.core.errors import FileError
from simcore.core.files import opening

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 10: "Q", 11: "q", 12: "d"}
_BOOL, _STRING, _ARRAY = 7, 8, 9
_LONGEST_NAME_BYTES = 1024
_MOST_DIMENSIONS = 4
_LEAST_ENTRY_BYTES = 8 + 4 + 1
"""Of an entry of the metadata; one of a tensor takes more."""
_PLAIN = {GGMLQuantizationType.F32: np.float32, GGMLQuantizationType.F16: np.float16}


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """Where a tensor lies: ``shape`` as torch states it (slowest dimension first), ``start`` in bytes of the file."""

    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    start: int
    size_bytes: int


class GgufFile:
    """A GGUF file whose header has been checked: ``metadata`` by key, ``tensors`` by name.

    Arrays of numbers are numpy arrays, arrays of strings lists. Raises ``FileError`` for a file that is none, or that
    claims what its size cannot hold.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with opening(path, "GGUF file"), path.open("rb") as file:
            if not file.seek(0, 2):
                raise FileError(path, "is empty, expected a GGUF file")
            self._bytes = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        reader = _Reader(path, self._bytes)
        tensor_count, entry_count = reader.counts()
        self.metadata: Mapping[str, Any] = reader.metadata(entry_count)
        self.tensors: Mapping[str, GgufTensor] = reader.tensors(tensor_count, self._alignment())

    def _alignment(self) -> int:
        alignment = self.metadata.get("general.alignment", 32)
        if type(alignment) is not int or not 0 < alignment <= 2**20 or alignment & (alignment - 1):
            raise FileError(self.path, f"general.alignment is {alignment!r}, expected a power of two")
        return alignment

    def read(self, name: str) -> torch.Tensor:
        """A tensor in float32; its memory is its own."""
        tensor = self.tensors[name]
        raw = np.frombuffer(self._bytes, np.uint8, tensor.size_bytes, tensor.start)
        plain = _PLAIN.get(tensor.kind)
        if plain is not None:
            numbers = raw.view(plain).astype(np.float32)
        else:
            try:
                with np.errstate(all="ignore"):  # scales may be anything
                    numbers = dequantize(raw, tensor.kind)
            except NotImplementedError:
                raise FileError(self.path, f"tensor {name!r} is {tensor.kind.name}, which is not supported") from None
        return torch.from_numpy(numbers.reshape(tensor.shape))


class _Reader:
    """Goes through a header from front to end; every read is checked against what is left of the file."""

    def __init__(self, path: Path, content: memoryview) -> None:
        self.path, self.content, self.at = path, content, 0

    def fail(self, problem: str) -> FileError:
        return FileError(self.path, f"not a valid GGUF file ({problem})")

    @property
    def left(self) -> int:
        return len(self.content) - self.at

    def take(self, count: int) -> memoryview:
        if count > self.left:
            raise self.fail(f"{count} bytes are to follow byte {self.at}, but {self.left} are left")
        self.at += count
        return self.content[self.at - count : self.at]

    def number(self, code: str) -> Any:
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def text(self, longest: int | None = None) -> str:
        start, length = self.at, self.number("Q")
        if longest is not None and length > longest:
            raise self.fail(f"the name at byte {start} is {length} bytes long, expected at most {longest}")
        try:
            return str(self.take(length), "utf-8")
        except UnicodeDecodeError:
            raise self.fail(f"the text at byte {start} is not UTF-8") from None

    def counts(self) -> tuple[int, int]:
        """How many tensors and how many entries of metadata there are."""
        if self.left < 4 or bytes(self.take(4)) != b"GGUF":
            raise self.fail("it does not begin with GGUF")
        version = self.number("I")
        if version not in (2, 3):
            raise self.fail(f"its version is {version}, expected 2 or 3")
        tensors, entries = self.number("Q"), self.number("Q")
        if (tensors + entries) * _LEAST_ENTRY_BYTES > self.left:
            raise self.fail(f"{tensors} tensors and {entries} entries of metadata do not fit its size")
        return tensors, entries

    def metadata(self, count: int) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        for _ in range(count):
            key = self.text(_LONGEST_NAME_BYTES)
            if key in entries:
                raise self.fail(f"the key {key!r} is there twice")
            entries[key] = self.value(self.number("I"))
        return entries

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.text()
        if kind == _BOOL:
            return self.boolean()
        if kind == _ARRAY:
            return self.array()
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        raise self.fail(f"the value before byte {self.at} has the unknown type {kind}")

    def boolean(self) -> bool:
        value = self.number("B")
        if value > 1:
            raise self.fail(f"the truth value before byte {self.at} is {value}")
        return bool(value)

    def array(self) -> Any:
        kind, count = self.number("I"), self.number("Q")
        least = 8 if kind == _STRING else 1
        if count * least > self.left:
            raise self.fail(f"an array of {count} values at byte {self.at} does not fit its size")
        if kind == _STRING:
            return [self.text() for _ in range(count)]
        if kind == _BOOL:
            return [self.boolean() for _ in range(count)]
        if kind not in _SCALARS:
            raise self.fail(f"the array before byte {self.at} has values of the type {kind}")
        layout = np.dtype("<" + _SCALARS[kind].replace("I", "u4").replace("i", "i4").replace("Q", "u8"))
        return np.frombuffer(self.take(count * layout.itemsize), layout)

    def tensors(self, count: int, alignment: int) -> dict[str, GgufTensor]:
        stated: dict[str, GgufTensor] = {}
        for _ in range(count):
            name = self.text(_LONGEST_NAME_BYTES)
            if name in stated:
                raise self.fail(f"the tensor {name!r} is there twice")
            stated[name] = self.tensor(name, alignment)
        start = -(-self.at // alignment) * alignment
        tensors = {
            name: GgufTensor(tensor.shape, tensor.kind, start + tensor.start, tensor.size_bytes)
            for name, tensor in stated.items()
        }
        in_order = sorted(tensors.items(), key=lambda item: item[1].start)
        for name, tensor in in_order:
            if tensor.start + tensor.size_bytes > len(self.content):
                raise self.fail(f"the tensor {name!r} reaches beyond its end")
        for (name, tensor), (other, later) in pairwise(in_order):
            if tensor.start + tensor.size_bytes > later.start:
                raise self.fail(f"the tensors {name!r} and {other!r} overlap")
        return tensors

    def tensor(self, name: str, alignment: int) -> GgufTensor:
        """One row of the table; ``start`` still counts from where data begin."""
        dimensions = self.number("I")
        if not 1 <= dimensions <= _MOST_DIMENSIONS:
            raise self.fail(f"the tensor {name!r} has {dimensions} dimensions, expected 1 to {_MOST_DIMENSIONS}")
        extents = [self.number("Q") for _ in range(dimensions)]
        number = self.number("I")
        try:
            kind = GGMLQuantizationType(number)
        except ValueError:
            raise self.fail(f"the tensor {name!r} has the unknown type {number}") from None
        start = self.number("Q")
        block, block_bytes = GGML_QUANT_SIZES[kind]
        if not all(extents) or extents[0] % block:
            raise self.fail(f"the tensor {name!r} has the extents {extents}, expected blocks of {block}")
        if start % alignment:
            raise self.fail(f"the tensor {name!r} is not aligned to {alignment} bytes")
        return GgufTensor(tuple(reversed(extents)), kind, start, math.prod(extents) // block * block_bytes)
