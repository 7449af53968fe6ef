"""What a result depends on, as a hash: the scenario, the files that it names, and the code that runs it."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from policies.registry import KINDS, third_party_module

_CODE = ("simcore", "policies", "hardware_profiles")
_CODE_SUFFIXES = (".py", ".json", ".yaml")


@dataclass(slots=True)
class Fingerprints:
    """Hashes scenarios, reading each file that they name only once."""

    _digests: dict[Path, str] = field(default_factory=dict, init=False)

    def of(self, document: Mapping[str, Any]) -> str:
        """The hash of a scenario that is complete, its paths absolute.

        Two runs of equal fingerprint have the same result. Modules that a third party's policies import are not seen.
        """
        named = {str(path): self._digest(path) for path in _named_files(document)}
        others = {module: self._digest(path) for module, path in _third_party_files(document)}
        text = json.dumps([document, named, _code(), others], sort_keys=True)
        return sha256(text.encode()).hexdigest()

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = _hash_of((path,))
        return self._digests[path]


def _named_files(value: Any) -> Iterator[Path]:
    """The files whose absolute paths stand anywhere in a document; of a model's folder, its configuration."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _named_files(part)
    elif isinstance(value, list):
        for part in value:
            yield from _named_files(part)
    elif isinstance(value, str) and Path(value).is_absolute():
        path = Path(value)
        path = path / "config.json" if path.is_dir() else path
        if path.is_file():
            yield path


@cache
def _code() -> str:
    """The hash of the simulator, of built-in policies, models and accelerators."""
    own = [
        path
        for package in _CODE
        for path in sorted(Path(str(files(package))).rglob("*"))
        if path.suffix in _CODE_SUFFIXES
    ]
    return _hash_of(own, version("numpy"))


def _third_party_files(document: Any) -> Iterator[tuple[str, Path]]:
    """The modules, and their files, of the policies of third parties that a document names; it has imported them."""
    for name in sorted(_names(document)):
        for kind in KINDS:
            module = third_party_module(kind, name)
            file = getattr(sys.modules.get(module or ""), "__file__", None)
            if module is not None and file is not None:
                yield module, Path(file)


def _names(value: Any) -> set[str]:
    """The names in a document that may be those of policies."""
    if isinstance(value, Mapping):
        own = {value["name"]} if isinstance(value.get("name"), str) else set()
        return own.union(*map(_names, value.values()))
    return set().union(*map(_names, value)) if isinstance(value, list) else set()


def _hash_of(paths: Iterable[Path], *texts: str) -> str:
    hashed = sha256()
    for text in texts:
        hashed.update(text.encode())
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                hashed.update(piece)
    return hashed.hexdigest()
