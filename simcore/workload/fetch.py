"""Downloading known public traces, each checked against its pinned hash."""

import hashlib
import http.client
import urllib.error
import urllib.request
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import IO

from simcore.core.errors import FileError, UnknownNameError
from simcore.core.files import opening, writing
from simcore.core.outputs import replacing
from simcore.core.yaml_text import read_yaml

_CHUNK_BYTES = 1 << 20
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class KnownTrace:
    """A public trace: where it lies, what it must hash to (SHA-256), and on which terms it may be used."""

    name: str
    title: str
    url: str
    file: str
    format: str
    sha256: str
    bytes: int
    licence: str
    citation: str


def known_traces() -> dict[str, KnownTrace]:
    """All traces that can be fetched, by name."""
    listed = read_yaml(files("simcore.workload") / "known_traces.yaml")
    return {name: KnownTrace(name=name, **facts) for name, facts in listed.items()}


def known_trace(name: str) -> KnownTrace:
    """The trace called ``name``. Raises UnknownNameError, which names the nearest one."""
    known = known_traces()
    if name not in known:
        raise UnknownNameError("trace", name, known)
    return known[name]


def fetch(trace: KnownTrace, folder: Path) -> Path:
    """Download ``trace`` into ``folder`` (made if need be) and return the file; one already there is kept.

    Raises FileError, leaving nothing behind, if the address cannot be read, if what it holds is not the pinned file,
    or if another file of that name is in the way.
    """
    target = folder / trace.file
    with opening(target):
        found = _sha256(target) if target.exists() else None
    if found is not None:
        if found != trace.sha256:
            raise FileError(
                target, f"is in the way and is not the trace {trace.name}: move it or choose another folder"
            )
        return target
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with replacing(target, lambda path: False) as beside, beside.open("wb") as stream:
        _download(trace, stream)
    return target


def _download(trace: KnownTrace, to: IO[bytes]) -> None:
    digest, received = hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(trace.url, timeout=_TIMEOUT_S) as answer:
            while received <= trace.bytes and (chunk := answer.read(_CHUNK_BYTES)):
                digest.update(chunk)
                received += len(chunk)
                to.write(chunk)
    except urllib.error.HTTPError as error:
        raise FileError(trace.url, f"the server answered {error.code} {error.reason}") from error
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise FileError(trace.url, f"cannot be downloaded ({getattr(error, 'reason', None) or error})") from error
    if received < trace.bytes:
        raise FileError(trace.url, f"ended after {received:,} of {trace.bytes:,} bytes")
    if received > trace.bytes:
        raise FileError(trace.url, f"is not the pinned file: it holds more than {trace.bytes:,} bytes")
    if digest.hexdigest() != trace.sha256:
        raise FileError(trace.url, f"is not the pinned file: expected SHA-256 {trace.sha256}, got {digest.hexdigest()}")


def _sha256(path: Path) -> str:
    with open(path, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
