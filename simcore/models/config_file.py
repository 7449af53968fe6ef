"""From a Hugging Face ``config.json`` to the facts of a model."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from simcore.core.bounds import MOST_OF_MODEL
from simcore.core.errors import FileError, InputError
from simcore.core.files import check_path, read_json
from simcore.core.validation import explain
from simcore.models.checkpoint_format import modelopt_keys, read_checkpoint_format
from simcore.models.families import Named, names_read, reader_of
from simcore.models.families.base import DecoderConfig
from simcore.models.families.harmless_keys import HARMLESS_KEYS, shows_images
from simcore.models.spec import Attention, CachedAttention, MixtureOfExperts, ModelSpec

_SHARED_KEYS = ("torch_dtype", "dtype", "quantization_config", "tie_word_embeddings")
"""Keys that a multimodal model may state for its language model too."""
_LANGUAGE_PARTS = ("thinker_config", "text_config", "llm_config", "language_config")
"""What multimodal models call the part that is their language model."""


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

    Of a multimodal model only the part that holds its language model is read. A key that is neither read nor known to
    change nothing is told in a notice of the model.

    Raises ``InputError`` for a missing or absurd key and for an architecture of no supported family, which it lists.
    """
    whole, notices = config, []
    config, source = _language_model(config, source)
    nested = config is not whole
    family = _family(config, source)
    if nested:
        config = {**family.nested_defaults, **config}
    if config.get("torch_dtype") is None and "dtype" in config:
        config = {**config, "torch_dtype": config["dtype"]}
    try:
        read = family.model_validate(config)
    except ValidationError as error:
        raise explain(error, family, source) from None
    _check_size({key: config.get(key) for key in sorted(family.known_keys())}, source)
    keys = read.quantization_config
    spec = read.spec(name, read_checkpoint_format(keys, source) if keys else None)
    _check(spec, source)
    if nested or shows_images(whole):
        notices.append(
            f"Of {name} the language model alone is simulated: images count as the prompt tokens that they become, and "
            f"the vision tower takes neither memory nor time."
        )
    unread = sorted(key for key in config.keys() - family.known_keys() - HARMLESS_KEYS if _says_something(config[key]))
    if unread:
        notices.append(f"Keys in the configuration of {name} that are not known were left unread: {', '.join(unread)}.")
    return replace(spec, notices=(*notices, *spec.notices))


def _check(spec: ModelSpec, source: str) -> None:
    """Refuse what no engine can run or nothing here can simulate, whatever the family calls it."""
    if not any(isinstance(group.attention, CachedAttention) for group in spec.layer_groups):
        expected = "attention in one layer at least, as a request without a KV cache is not modelled"
        raise InputError(f"{source}layers with attention", 0, expected)
    for group in spec.layer_groups:
        attention, block = group.attention, group.feed_forward
        if isinstance(attention, Attention) and attention.query_heads % attention.kv_heads:
            expected = f"a divisor of the {attention.query_heads} query heads"
            raise InputError(f"{source}heads of keys and values", attention.kv_heads, expected)
        if isinstance(block, MixtureOfExperts) and block.experts < block.experts_per_token:
            expected = f"at least the {block.experts_per_token} that a token runs through"
            raise InputError(f"{source}experts", block.experts, expected)


def _language_model(config: Mapping[str, Any], source: str) -> tuple[Mapping[str, Any], str]:
    """The keys of the language model, and what goes before them in errors; one part may hold another."""
    for part in _LANGUAGE_PARTS:
        inner = config.get(part)
        if isinstance(inner, dict):
            shared = {key: config[key] for key in _SHARED_KEYS if key in config}
            return _language_model(shared | inner, f"{source}{part}.")
    return config, source


def _says_something(value: object) -> bool:
    """Whether a value that a file states is other than none, off or empty."""
    return bool(value)


def _check_size(keys: Mapping[str, Any], source: str) -> None:
    for key, value in keys.items():
        for number in _numbers(value):
            if abs(number) > MOST_OF_MODEL:
                raise InputError(f"{source}{key}", number, f"a number of at most {MOST_OF_MODEL:,}")


def _numbers(value: Any) -> Iterator[int | float]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _numbers(inner)
    elif isinstance(value, int | float):
        yield value


def _family(config: Mapping[str, Any], source: str) -> type[DecoderConfig]:
    """By ``architectures``, which says what is run; by ``model_type`` where a nested configuration leaves that out."""
    architectures, model_type = config.get("architectures"), config.get("model_type")
    if not model_type and not architectures and source.endswith("text_config."):
        model_type = "llama"  # what the Transformers library takes a part for that does not say
    if not (isinstance(architectures, list) and architectures):
        return _supported("model_types", model_type, f"{source}model_type")
    family = _supported("architectures", architectures[0], f"{source}architectures")
    # A type that is not known may well be a relative's own name for the same architecture.
    if isinstance(model_type, str) and model_type not in family.model_types and reader_of("model_types", model_type):
        expected = f"{family.model_types[0]}, as architectures is {architectures[0]}"
        raise InputError(f"{source}model_type", model_type, expected)
    return family


def _supported(named: Named, name: object, field: str) -> type[DecoderConfig]:
    family = reader_of(named, name) if isinstance(name, str) else None
    if family is None:  # no nearest name: an architecture that is not supported is hardly ever a misspelt one
        raise InputError(field, name, f"a supported one ({', '.join(names_read(named))})")
    return family
