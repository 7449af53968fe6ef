"""Samples as they are taken: one checked line each, on the disk before the next is begun."""

import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from calibrate.measuring.device import KernelPoint
from calibrate.measuring.repetition import KernelSample, Measured
from simcore.core.errors import FileError
from simcore.core.files import opening, writing

_HEAD = "servetwin samples 1"


class SampleLog:
    """A file of measurements of one machine, described by ``machine``; only ever appended to.

    Opening reads what is there: an unfinished last line, of a process that was killed, is cut off; a file with broken
    lines is set aside under another name, which ``set_aside`` holds, and what is whole of it is kept, if it still says
    whose samples they are. Raises
    ``FileError`` for a file of another machine, and where nothing can be written.
    """

    def __init__(self, path: Path, machine: dict[str, str]) -> None:
        self.path, self.machine = path, machine
        self.set_aside: Path | None = None
        self.measured: list[Measured] = []
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            lines, broken = _read(path)
            if broken and not _is_head(lines[0] if lines else None):
                lines = []  # whose samples they are is not known any more
            if lines:
                self._take(lines)
            if broken:
                self.set_aside = _free_name(path)
                path.rename(self.set_aside)
            if broken or not lines:
                self._write_anew(lines[1:])
            elif not _ends_whole(path):
                _cut(path)

    def add(self, measured: Measured) -> None:
        """Keep a measurement, whatever happens after this returns."""
        with writing(self.path), self.path.open("ab") as file:
            file.write(_line(_plain(measured)))
            file.flush()
            os.fsync(file.fileno())
        self.measured.append(measured)

    def _take(self, documents: list[Any]) -> None:
        head, *rest = documents
        if not _is_head(head):
            raise FileError(self.path, "is no log of samples of this version")
        for name, value in self.machine.items():
            if head["machine"].get(name) != value:
                there = head["machine"].get(name)
                raise FileError(
                    self.path, f"holds samples of {name} {there!r}, and this is {value!r}; choose another --out"
                )
        self.measured = [_measured(document) for document in rest]

    def _write_anew(self, documents: Iterable[Any]) -> None:
        beside = self.path.with_suffix(".new")
        with beside.open("wb") as file:
            file.write(_line({"form": _HEAD, "machine": self.machine}))
            file.writelines(_line(document) for document in documents)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)


def read_log(path: Path) -> tuple[dict[str, str], list[Measured]]:
    """The machine and all whole measurements of a log; raises ``FileError`` where it cannot be read."""
    with opening(path):
        documents, _ = _read(path)
    if not documents or not _is_head(documents[0]):
        raise FileError(path, "is no log of samples of this version")
    return documents[0]["machine"], [_measured(document) for document in documents[1:]]


def _is_head(document: Any) -> bool:
    return isinstance(document, dict) and document.get("form") == _HEAD


def _line(document: Any) -> bytes:
    body = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return f"{zlib.crc32(body.encode()):08x} {body}\n".encode()


def _read(path: Path) -> tuple[list[Any], bool]:
    """The documents of whole lines, and whether a line that should be whole is not."""
    if not path.exists():
        return [], False
    content = path.read_bytes()
    lines = content.split(b"\n")
    unfinished = lines.pop()  # empty, where the last line ends
    documents, broken = [], False
    for line in lines:
        try:
            documents.append(_document(line))
        except ValueError:
            broken = True
    if not documents and content:
        broken = broken or bool(unfinished)
    return documents, broken


def _document(line: bytes) -> Any:
    checksum, _, body = line.partition(b" ")
    if int(checksum, 16) != zlib.crc32(body):
        raise ValueError("checksum")
    return json.loads(body)


def _ends_whole(path: Path) -> bool:
    return path.read_bytes().endswith(b"\n")


def _cut(path: Path) -> None:
    """Leave out a last line that does not end."""
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(content.rfind(b"\n") + 1)


def _free_name(path: Path) -> Path:
    return next(name for name in _names(path) if not name.exists())


def _names(path: Path) -> Iterator[Path]:
    count = 1
    while True:
        yield path.with_name(f"{path.stem}.broken-{count}{path.suffix}")
        count += 1


def _plain(measured: Measured) -> dict[str, Any]:
    samples = [
        {"kind": sample.point.kind, "shape": sample.point.shape, "s": [sample.latency_s, sample.low_s, sample.high_s]}
        for sample in measured.samples
    ]
    return {**asdict(measured), "samples": samples}


def _measured(document: dict[str, Any]) -> Measured:
    samples = tuple(
        KernelSample(KernelPoint(one["kind"], tuple(one["shape"])), *one["s"]) for one in document["samples"]
    )
    return Measured(**{**document, "samples": samples})
