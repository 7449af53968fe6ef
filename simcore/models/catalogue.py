"""The models that are known by name: one JSON file of facts each, in the folder ``presets``."""

from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from pydantic import BaseModel, ConfigDict, PositiveInt

from simcore.core.errors import UnknownNameError
from simcore.models.config_file import read_config
from simcore.models.spec import ModelSpec

_SUFFIX = ".json"


class Published(BaseModel):
    """What the publisher says of the model's size.

    ``active_counts_input_embedding`` tells the publisher's convention: whether the token embedding, of which a token
    reads one row, is among the active parameters.
    """

    model_config = ConfigDict(defer_build=True, strict=True, frozen=True, extra="forbid")

    total_parameters: PositiveInt
    active_parameters: PositiveInt
    active_counts_input_embedding: bool
    source: str


class Exact(BaseModel):
    """What a reading of the configuration must come to, to the last one: parameters, and KV bytes in 16 bits.

    ``source`` says who counted, as the reader's own result would prove nothing.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    parameters: PositiveInt
    kv_bytes_per_token: PositiveInt
    source: str


class Preset(BaseModel):
    """One file of facts: ``config`` in the keys of the model's ``config.json``, ``source`` where they were read.

    The tests hold the reading of each to ``published`` and ``exact``.
    """

    model_config = ConfigDict(defer_build=True, strict=True, frozen=True, extra="forbid")

    repository: str
    source: str
    published: Published
    exact: Exact
    config: dict[str, Any]


def preset_names() -> tuple[str, ...]:
    """Names of the known models, sorted."""
    files = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX)))


def load_preset(name: str) -> Preset:
    """Facts and sources of a known model; raises ``UnknownNameError`` for any other name."""
    if name not in preset_names():
        raise UnknownNameError("model", name, preset_names())
    return Preset.model_validate_json((_folder() / f"{name}{_SUFFIX}").read_bytes())


@cache
def load_preset_spec(name: str) -> ModelSpec:
    """The model's facts; raises ``UnknownNameError`` for a name that is not known."""
    return read_config(load_preset(name).config, name, source=f"{name}: ")


def _folder() -> Traversable:
    return resources.files("simcore.models") / "presets"
