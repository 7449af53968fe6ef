"""What a result depends on, as a hash: the scenario, the files that it names, and the code that runs it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.metadata import entry_points, version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from policies.registry import ENTRY_POINT_GROUP

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
        text = json.dumps([document, named, _code()], sort_keys=True)
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
    """The hash of the simulator, of built-in policies, models and accelerators, and of registered policies."""
    own = [
        path
        for package in _CODE
        for path in sorted(Path(str(files(package))).rglob("*"))
        if path.suffix in _CODE_SUFFIXES
    ]
    specs = [find_spec(point.value.partition(":")[0]) for point in entry_points(group=ENTRY_POINT_GROUP)]
    others = sorted({Path(spec.origin) for spec in specs if spec and spec.origin})
    return _hash_of([*own, *others], version("numpy"))


def _hash_of(paths: Iterable[Path], *texts: str) -> str:
    hashed = sha256()
    for text in texts:
        hashed.update(text.encode())
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                hashed.update(piece)
    return hashed.hexdigest()
