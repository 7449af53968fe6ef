"""From a Hugging Face ``config.json`` to the facts of a model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from simcore.core.errors import FileError, InputError
from simcore.core.files import check_path, read_json
from simcore.core.validation import explain
from simcore.models.checkpoint_format import modelopt_keys, read_checkpoint_format
from simcore.models.families import FAMILIES, DecoderConfig
from simcore.models.spec import ModelSpec

_BY_ARCHITECTURE = {name: family for family in FAMILIES for name in family.architectures}
_BY_MODEL_TYPE = {name: family for family in FAMILIES for name in family.model_types}
_SHARED_KEYS = ("torch_dtype", "dtype", "quantization_config", "tie_word_embeddings")
"""Keys that a multimodal model may state for its language model too."""


def load_config_file(path: Path) -> ModelSpec:
    """The model described by a ``config.json``, or by the one in a folder; named after the folder or the file.

    An ``hf_quant_config.json`` beside it says how the checkpoint is quantised, where it does not say so itself.

    Raises ``FileError`` if there is no such file or it is not JSON, ``InputError`` if a key is missing or absurd.
    """
    check_path(path)
    file = path / "config.json" if path.is_dir() else path
    config = read_json(file)
    if not isinstance(config, dict):
        raise FileError(file, "expected a JSON object of configuration keys")
    beside = file.with_name("hf_quant_config.json")
    if file.name == "config.json" and not config.get("quantization_config") and beside.exists():
        config = config | {"quantization_config": modelopt_keys(read_json(beside), str(beside))}
    name = file.resolve().parent.name if file.name == "config.json" else file.stem
    return read_config(config, name, source=f"{file}: ")


def read_config(config: Mapping[str, Any], name: str, source: str = "") -> ModelSpec:
    """The model described by the keys of a Hugging Face configuration; ``source`` goes before a field in errors.

    Of a multimodal model, whose ``text_config`` holds the language model, only that part is read.

    Raises ``InputError`` for a missing or absurd key and for an architecture of no supported family, which it lists.
    """
    text = config.get("text_config")
    if isinstance(text, dict):
        shared = {key: config[key] for key in _SHARED_KEYS if key in config}
        config, source = shared | text, f"{source}text_config."
    family = _family(config, source)
    if config.get("torch_dtype") is None and "dtype" in config:
        config = {**config, "torch_dtype": config["dtype"]}
    try:
        read = family.model_validate(config)
    except ValidationError as error:
        raise explain(error, family, source) from None
    keys = read.quantization_config
    return read.spec(name, read_checkpoint_format(keys, source) if keys else None)


def _family(config: Mapping[str, Any], source: str) -> type[DecoderConfig]:
    """By ``architectures``, which says what is run; by ``model_type`` where a nested configuration leaves that out."""
    architectures, model_type = config.get("architectures"), config.get("model_type")
    if not (isinstance(architectures, list) and architectures):
        return _supported(f"{source}model_type", model_type, _BY_MODEL_TYPE)
    family = _supported(f"{source}architectures", architectures[0], _BY_ARCHITECTURE)
    # A type that is not known may well be a relative's own name for the same architecture.
    if isinstance(model_type, str) and _BY_MODEL_TYPE.get(model_type, family) is not family:
        expected = f"{' or '.join(family.model_types)}, as architectures is {architectures[0]}"
        raise InputError(f"{source}model_type", model_type, expected)
    return family


def _supported(field: str, name: object, families: Mapping[str, type[DecoderConfig]]) -> type[DecoderConfig]:
    # No nearest name: an architecture that is not supported is hardly ever a misspelt one.
    if not isinstance(name, str) or name not in families:
        raise InputError(field, name, f"a supported one ({', '.join(sorted(families))})")
    return families[name]
