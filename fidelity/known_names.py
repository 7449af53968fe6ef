"""What measured files call things, and what they are called here."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from simcore.core.yaml_text import read_yaml


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names here by the names there: engine presets, accelerators and models.

    ``unsupported_models`` tell what a model has that no preset can.
    """

    engines: dict[str, str]
    accelerators: dict[str, str]
    models: dict[str, str]
    unsupported_models: dict[str, str]


@cache
def known_names() -> KnownNames:
    """The table in ``known_names.yaml``."""
    return KnownNames(**read_yaml(files("fidelity") / "known_names.yaml"))
